#include "unit.h"
#include "scripted_cupti.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cupti_target.h>

#include "worker/cuda/profiling/metric_set.h"

struct cupti_script cupti;

static struct metric_set opened_set, configured_set;

int cupti_set_up(void **state)
{
    cupti = (struct cupti_script){.chip = "GH100", .passes = CUPTI_PASSES};
    cupti.support.isSupported = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    return 0;
}

/* ---- activity records ---- */

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed)
{
    cupti.requested = requested;
    cupti.completed = completed;
    return cupti.register_callbacks;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    if (kind == CUPTI_ACTIVITY_KIND_MEMCPY || kind == CUPTI_ACTIVITY_KIND_MEMSET)
        return CUPTI_SUCCESS; /* programs enable them, too */
    assert_int_equal(kind, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    ++cupti.activity_enabled;
    bool refused = cupti.in_the_way && cupti.present;
    cupti.present = true;
    cupti.tracing = cupti.tracer = true;
    return refused ? CUPTI_ERROR_NOT_COMPATIBLE : cupti.activity_enable;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    if (kind == CUPTI_ACTIVITY_KIND_MEMCPY || kind == CUPTI_ACTIVITY_KIND_MEMSET)
        return CUPTI_SUCCESS;
    assert_int_equal(kind, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    ++cupti.activity_disabled;
    cupti.tracing = false;
    return CUPTI_SUCCESS;
}

/* Delivers all records in one buffer, and then an empty buffer. */
CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    assert_int_equal(flag, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    for (int i = 0; i < 2; ++i) {
        uint8_t *buffer;
        size_t size, records;
        cupti.requested(&buffer, &size, &records);
        assert_non_null(buffer);
        cupti.handed = i == 0 ? 0 : cupti.record_count;
        cupti.completed(NULL, 0, buffer, size, i == 0 ? size : 0);
    }
    return cupti.flush;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    assert_non_null(buffer);
    if (valid == 0 || cupti.handed == cupti.record_count)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)&cupti.records[cupti.handed++];
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    *dropped = cupti.records_dropped;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **text)
{
    *text = result == CUPTI_ERROR_NOT_COMPATIBLE ? "in the way" : "some failure";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = "CUPTI_ERROR";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    *timestamp = cupti.now;
    return CUPTI_SUCCESS;
}

/* ---- the subscriber ---- */

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                           void *user)
{
    if (cupti.subscribe != CUPTI_SUCCESS)
        return cupti.subscribe;
    assert_true(cupti.present);
    assert_null(cupti.called);
    *subscriber = (CUpti_SubscriberHandle)&cupti;
    cupti.called = callback;
    cupti.caller = user;
    ++cupti.subscribed;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    assert_ptr_equal(subscriber, &cupti);
    assert_int_equal(enable, 1);
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        assert_int_equal(id, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
        cupti.modules = true;
    } else {
        assert_int_equal(domain, CUPTI_CB_DOMAIN_DRIVER_API);
        cupti.calls[id] = true;
    }
    return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    assert_ptr_equal(subscriber, &cupti);
    assert_non_null(cupti.called);
    cupti.called = NULL;
    return CUPTI_SUCCESS;
}

void cupti_unload(void)
{
    if (cupti.called && cupti.modules)
        cupti.called(cupti.caller, CUPTI_CB_DOMAIN_RESOURCE,
                     CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, NULL);
}

void cupti_launch(void)
{
    const CUpti_CallbackId id = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
    static const CUpti_ApiCallbackSite sites[] = {CUPTI_API_ENTER, CUPTI_API_EXIT};
    for (int i = 0; i < 2 && cupti.called && cupti.calls[id]; ++i) {
        const CUpti_CallbackData data = {.callbackSite = sites[i]};
        cupti.called(cupti.caller, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
    }
}

/* ---- range profiler ---- */

static size_t ranges_now(void)
{
    return cupti.trouble.ranges > 0 ? cupti.trouble.ranges : cupti.in_pass;
}

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *parameters)
{
    ++cupti.attached;
    cupti.present = true;
    return cupti.initialize;
}

CUptiResult cuptiFinalize(void)
{
    assert_null(cupti.called);
    ++cupti.finalized;
    cupti.present = cupti.tracer = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params *parameters)
{
    size_t size = parameters->structSize;
    *parameters = cupti.support;
    parameters->structSize = size;
    return cupti.supported;
}

CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *parameters)
{
    parameters->pChipName = cupti.chip;
    return CUPTI_SUCCESS;
}

CUptiResult
cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *parameters)
{
    parameters->counterAvailabilityImageSize = 1;
    return cupti.availability;
}

CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *parameters)
{
    parameters->pRangeProfilerObject = (CUpti_RangeProfiler_Object *)&cupti;
    cupti.enabled += cupti.trouble.enable == CUPTI_SUCCESS;
    return cupti.trouble.enable;
}

CUptiResult
cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *parameters)
{
    parameters->counterDataSize = 16;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *parameters)
{
    cupti.passing = false;
    cupti.runs += cupti.in_process;
    parameters->isAllPassSubmitted = cupti.runs >= cupti.passes + cupti.trouble.passes;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *parameters)
{
    parameters->numOfRangeDropped = cupti.trouble.dropped;
    return CUPTI_SUCCESS;
}

CUptiResult
cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *parameters)
{
    parameters->numTotalRanges = ranges_now();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *parameters)
{
    cupti.passing = true;
    cupti.in_pass = 0;
    return cupti.trouble.start;
}

CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params *parameters)
{
    cupti.within = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *parameters)
{
    assert_ptr_equal(parameters->pRangeProfilerObject, &cupti);
    ++cupti.disabled;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *parameters)
{
    assert_int_equal(parameters->replayMode,
                     cupti.replayed ? CUPTI_KernelReplay : CUPTI_UserReplay);
    cupti.range = parameters->range;
    cupti.room = parameters->maxRangesPerPass;
    if (cupti.config_once && cupti.configured == cupti.enabled)
        return CUPTI_ERROR_INVALID_OPERATION;
    if (cupti.configured != cupti.enabled)
        configured_set = opened_set;
    cupti.configured = cupti.enabled;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params *parameters)
{
    if (cupti.trouble.push != CUPTI_SUCCESS && cupti.pushed >= cupti.trouble.push_from)
        return cupti.trouble.push;
    char *name = cupti.names[cupti.in_pass++];
    ++cupti.pushed;
    assert_true(cupti.in_pass <= sizeof cupti.names / sizeof *cupti.names);
    snprintf(name, sizeof cupti.names[0], "%s", parameters->pRangeName);
    cupti.within = true;
    return CUPTI_SUCCESS;
}

/* The image lists the ranges in reverse order. */
CUptiResult cuptiRangeProfilerCounterDataGetRangeInfo(
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params *parameters)
{
    size_t pushed = ranges_now() - 1 - parameters->rangeIndex;
    parameters->rangeName = cupti.trouble.nameless ? "" : cupti.names[pushed];
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params *parameters)
{
    return CUPTI_SUCCESS;
}

CUptiResult metric_set_open(struct metric_set *set, const char *chip, const uint8_t *availability)
{
    for (size_t i = 0; i < set->count; ++i)
        if (cupti.unknown && strstr(set->metrics[i], cupti.unknown))
            return CUPTI_ERROR_INVALID_METRIC_NAME;
    set->host = (struct CUpti_Profiler_Host_Object *)&opened_set;
    set->passes = CUPTI_PASSES;
    opened_set = *set;
    return CUPTI_SUCCESS;
}

void metric_set_close(struct metric_set *set)
{
    set->host = NULL;
}

static bool metric_is_counted(const char *metric)
{
    bool configured = false;
    for (size_t i = 0; i < configured_set.count; ++i)
        configured |= strcmp(configured_set.metrics[i], metric) == 0;
    return configured && !(cupti.lacking && strstr(metric, cupti.lacking));
}

CUptiResult metric_set_evaluate(const struct metric_set *set, const uint8_t *image, size_t size,
                                size_t range, double *values)
{
    for (size_t i = 0; i < set->count; ++i)
        values[i] = metric_is_counted(set->metrics[i]) ? CUPTI_EACH * (double)(range + 1) : NAN;
    return CUPTI_SUCCESS;
}
