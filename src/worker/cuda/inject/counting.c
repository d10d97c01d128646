#include "worker/cuda/inject/counting.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "worker/cuda/profiling/cupti_call.h"
#include "worker/cuda/profiling/cupti_process.h"
#include "worker/cuda/profiling/formulas.h"
#include "worker/cuda/profiling/metric_set.h"
#include "worker/cuda/profiling/refusal.h"

/* The file: this, and the image. */
struct passed {
    uint64_t bytes; /* of the image */
    uint64_t pass;  /* the next one, as CUPTI counts them */
    uint64_t level; /* its nesting level */
};

struct counting {
    CUcontext context;
    struct counting_order order;
    char chip[32];
    const struct chip_family *family;
    uint8_t *availability; /* owned */
    const char *metrics[FORMULAS_METRICS_MAX];
    struct metric_set *set; /* owned */
    CUpti_RangeProfiler_Object *profiler;
    struct passed passed;
    uint8_t *image; /* owned */
    bool last;
};

static bool by_launch(const struct counting *counting)
{
    return counting->order.by != COUNTING_REGION;
}

/* Of the image; 1 for the region. */
static size_t ranges_most(const struct counting *counting)
{
    return by_launch(counting) ? counting->order.room : 1;
}

static CUptiResult read_device(struct counting *counting)
{
    CUdevice device;
    PARAMETERS(name, CUpti_Device_GetChipName);
    PARAMETERS(get, CUpti_Profiler_GetCounterAvailability);
    if (cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return CUPTI_ERROR_INVALID_CONTEXT;
    name.deviceIndex = (size_t)device;
    TRY_CUPTI(cuptiDeviceGetChipName(&name));
    snprintf(counting->chip, sizeof counting->chip, "%s", name.pChipName);
    get.ctx = counting->context;
    TRY_CUPTI(cuptiProfilerGetCounterAvailability(&get));
    counting->availability = malloc(get.counterAvailabilityImageSize);
    if (!counting->availability)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    get.pCounterAvailabilityImage = counting->availability;
    return cuptiProfilerGetCounterAvailability(&get);
}

static CUptiResult make_set(struct counting *counting)
{
    bool wanted[QUANTITY_COUNT];
    for (int i = 0; i < QUANTITY_COUNT; ++i) {
        unsigned tensor = quantity_tensor((enum quantity)i);
        wanted[i] = !tensor || tensor & counting->order.tensors;
    }
    size_t count = formulas_metrics(counting->family, wanted, counting->metrics);
    return metric_set_create(counting->chip, counting->availability, counting->metrics, count,
                             &counting->set);
}

/* ---- the image ---- */

static CUptiResult image_create(struct counting *counting)
{
    PARAMETERS(size, CUpti_RangeProfiler_GetCounterDataSize);
    PARAMETERS(image, CUpti_RangeProfiler_CounterDataImage_Initialize);
    size.pRangeProfilerObject = counting->profiler;
    size.pMetricNames = (const char **)metric_set_metrics(counting->set, &size.numMetrics);
    size.maxNumOfRanges = ranges_most(counting);
    size.maxNumRangeTreeNodes = (uint32_t)ranges_most(counting);
    TRY_CUPTI(cuptiRangeProfilerGetCounterDataSize(&size));
    counting->passed = (struct passed){.bytes = size.counterDataSize, .level = 1};
    counting->image = malloc(size.counterDataSize);
    if (!counting->image)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    image.pRangeProfilerObject = counting->profiler;
    image.counterDataSize = size.counterDataSize;
    image.pCounterData = counting->image;
    return cuptiRangeProfilerCounterDataImageInitialize(&image);
}

/* Of the last run; it is not to be initialised again. False: there is none. */
static bool image_load(struct counting *counting)
{
    const uint64_t most = 1u << 30;
    FILE *file = by_launch(counting) ? NULL : fopen(counting->order.image, "re");
    struct passed *passed = &counting->passed;
    if (!file)
        return false;
    bool read = fread(passed, sizeof *passed, 1, file) == 1 && passed->bytes < most &&
                (counting->image = malloc(passed->bytes)) != NULL &&
                fread(counting->image, passed->bytes, 1, file) == 1;
    fclose(file);
    return read;
}

/* The worker takes it for the next run, if this one launched what it should. */
static bool image_save(const struct counting *counting)
{
    char path[4200];
    snprintf(path, sizeof path, "%s%s", counting->order.image, COUNTING_NEXT);
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool written = fwrite(&counting->passed, sizeof counting->passed, 1, file) == 1 &&
                   fwrite(counting->image, counting->passed.bytes, 1, file) == 1;
    return fclose(file) == 0 && written;
}

/* ---- passes ---- */

static CUptiResult pass_start(struct counting *counting)
{
    PARAMETERS(start, CUpti_RangeProfiler_Start);
    start.pRangeProfilerObject = counting->profiler;
    return cuptiRangeProfilerStart(&start);
}

static CUptiResult configure(struct counting *counting)
{
    PARAMETERS(config, CUpti_RangeProfiler_SetConfig);
    config.pRangeProfilerObject = counting->profiler;
    config.pConfig = metric_set_config(counting->set, &config.configSize);
    config.pCounterDataImage = counting->image;
    config.counterDataImageSize = counting->passed.bytes;
    config.range = by_launch(counting) ? CUPTI_AutoRange : CUPTI_UserRange;
    config.replayMode =
        counting->order.by == COUNTING_REPLAY ? CUPTI_KernelReplay : CUPTI_UserReplay;
    config.maxRangesPerPass = ranges_most(counting);
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.passIndex = counting->passed.pass;
    config.targetNestingLevel = (uint16_t)counting->passed.level;
    return cuptiRangeProfilerSetConfig(&config);
}

static CUptiResult begin(struct counting *counting)
{
    PARAMETERS(enable, CUpti_RangeProfiler_Enable);
    enable.ctx = counting->context;
    TRY_CUPTI(cuptiRangeProfilerEnable(&enable));
    counting->profiler = enable.pRangeProfilerObject;
    if (!image_load(counting))
        TRY_CUPTI(image_create(counting));
    TRY_CUPTI(configure(counting));
    return counting->order.by == COUNTING_REPLAY ? CUPTI_SUCCESS : pass_start(counting);
}

static CUptiResult start_as(struct counting *counting)
{
    TRY_CUPTI(cupti_attach());
    TRY_CUPTI(read_device(counting));
    counting->family = chip_family_find(counting->chip);
    if (!counting->family)
        return CUPTI_ERROR_NOT_SUPPORTED;
    TRY_CUPTI(make_set(counting));
    if (counting->order.by == COUNTING_LAUNCHES &&
        counting_passes(counting) > counting->order.passes)
        counting->order.by = COUNTING_REGION;
    return begin(counting);
}

static void counting_free(struct counting *counting)
{
    metric_set_destroy(counting->set);
    free(counting->availability);
    free(counting->image);
    free(counting);
}

struct counting *counting_start(CUcontext context, const struct counting_order *order,
                                struct outcome *refusal)
{
    struct counting *counting = calloc(1, sizeof *counting);
    if (!counting) {
        outcome_set(refusal, COUNTED_REFUSED, "no memory");
        return NULL;
    }
    counting->context = context;
    counting->order = *order;
    CUptiResult code = start_as(counting);
    if (code == CUPTI_SUCCESS)
        return counting;
    refusal_set(code, "range profiler", refusal);
    counting_free(counting);
    return NULL;
}

CUcontext counting_context(const struct counting *counting)
{
    return counting->context;
}

enum counting_by counting_by(const struct counting *counting)
{
    return counting->order.by;
}

size_t counting_passes(const struct counting *counting)
{
    return metric_set_passes(counting->set);
}

static bool is_well(CUptiResult code, struct outcome *refusal)
{
    if (code != CUPTI_SUCCESS)
        refusal_set(code, "range profiler", refusal);
    return code == CUPTI_SUCCESS;
}

static CUptiResult push(struct counting *counting)
{
    PARAMETERS(push, CUpti_RangeProfiler_PushRange);
    push.pRangeProfilerObject = counting->profiler;
    push.pRangeName = "region";
    return cuptiRangeProfilerPushRange(&push);
}

bool counting_open(struct counting *counting, struct outcome *refusal)
{
    CUptiResult code = CUPTI_SUCCESS;
    if (counting->order.by == COUNTING_REGION)
        code = push(counting);
    else if (counting->order.by == COUNTING_REPLAY)
        code = pass_start(counting);
    return is_well(code, refusal);
}

static CUptiResult finish(struct counting *counting)
{
    PARAMETERS(pop, CUpti_RangeProfiler_PopRange);
    PARAMETERS(stop, CUpti_RangeProfiler_Stop);
    pop.pRangeProfilerObject = counting->profiler;
    if (!by_launch(counting))
        TRY_CUPTI(cuptiRangeProfilerPopRange(&pop));
    stop.pRangeProfilerObject = counting->profiler;
    TRY_CUPTI(cuptiRangeProfilerStop(&stop));
    counting->passed.pass = stop.passIndex;
    counting->passed.level = stop.targetNestingLevel;
    counting->last = stop.isAllPassSubmitted || counting->order.by == COUNTING_REPLAY;
    return CUPTI_SUCCESS;
}

bool counting_close(struct counting *counting, bool *last, struct outcome *refusal)
{
    bool well = is_well(finish(counting), refusal);
    *last = well && counting->last;
    return well;
}

bool counting_again(struct counting *counting, struct outcome *refusal)
{
    return counting->last || is_well(pass_start(counting), refusal);
}

static CUptiResult decode(struct counting *counting, size_t *dropped)
{
    PARAMETERS(data, CUpti_RangeProfiler_DecodeData);
    data.pRangeProfilerObject = counting->profiler;
    TRY_CUPTI(cuptiRangeProfilerDecodeData(&data));
    *dropped = data.numOfRangeDropped;
    return CUPTI_SUCCESS;
}

static bool is_decoded(struct counting *counting, struct outcome *refusal)
{
    size_t dropped = 0;
    if (!is_well(decode(counting, &dropped), refusal))
        return false;
    if (dropped > 0)
        outcome_set(refusal, COUNTED_INCOMPLETE, "%zu ranges were dropped by CUPTI", dropped);
    return dropped == 0;
}

bool counting_leave(struct counting *counting, struct outcome *refusal)
{
    if (!is_decoded(counting, refusal))
        return false;
    if (image_save(counting))
        return true;
    outcome_set(refusal, COUNTED_INCOMPLETE, "%s cannot be written", counting->order.image);
    return false;
}

static CUptiResult ranges_found(const struct counting *counting, size_t *found)
{
    PARAMETERS(info, CUpti_RangeProfiler_GetCounterDataInfo);
    info.pCounterDataImage = counting->image;
    info.counterDataImageSize = counting->passed.bytes;
    TRY_CUPTI(cuptiRangeProfilerGetCounterDataInfo(&info));
    *found = info.numTotalRanges;
    return CUPTI_SUCCESS;
}

static CUptiResult evaluate(const struct counting *counting, size_t range,
                            double values[QUANTITY_COUNT])
{
    double metrics[FORMULAS_METRICS_MAX];
    size_t count;
    const char *const *names = metric_set_metrics(counting->set, &count);
    TRY_CUPTI(metric_set_evaluate(counting->set, counting->image, counting->passed.bytes, range,
                                  metrics));
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        values[i] = formulas_evaluate(counting->family, (enum quantity)i, names, metrics, count);
    return CUPTI_SUCCESS;
}

bool counting_read(struct counting *counting, size_t count, size_t begun,
                   double (*values)[QUANTITY_COUNT], struct outcome *refusal)
{
    size_t found = 0;
    if (!is_decoded(counting, refusal) || !is_well(ranges_found(counting, &found), refusal))
        return false;
    if (by_launch(counting) && found != begun) { /* nothing else tells which launch a range is of */
        outcome_set(refusal, COUNTED_INCOMPLETE, "%zu ranges of %zu launches", found, begun);
        return false;
    }
    for (size_t i = 0; i < count; ++i)
        if (!is_well(evaluate(counting, found - count + i, values[i]), refusal))
            return false;
    return true;
}
