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
    const char *image_path;
    char chip[32];
    const struct chip_family *family;
    uint8_t *availability; /* owned */
    const char *metrics[FORMULAS_METRICS_MAX];
    struct metric_set *set; /* owned */
    CUpti_RangeProfiler_Object *profiler;
    struct passed passed;
    uint8_t *image; /* owned */
};

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

static CUptiResult make_set(struct counting *counting, unsigned tensors)
{
    bool wanted[QUANTITY_COUNT];
    for (int i = 0; i < QUANTITY_COUNT; ++i) {
        unsigned tensor = quantity_tensor((enum quantity)i);
        wanted[i] = !tensor || tensor & tensors;
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
    size.maxNumOfRanges = 1;
    size.maxNumRangeTreeNodes = 1;
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
    FILE *file = fopen(counting->image_path, "re");
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
    snprintf(path, sizeof path, "%s%s", counting->image_path, COUNTING_NEXT);
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool written = fwrite(&counting->passed, sizeof counting->passed, 1, file) == 1 &&
                   fwrite(counting->image, counting->passed.bytes, 1, file) == 1;
    return fclose(file) == 0 && written;
}

/* ---- the pass ---- */

static CUptiResult begin(struct counting *counting)
{
    PARAMETERS(enable, CUpti_RangeProfiler_Enable);
    PARAMETERS(config, CUpti_RangeProfiler_SetConfig);
    PARAMETERS(start, CUpti_RangeProfiler_Start);
    enable.ctx = counting->context;
    TRY_CUPTI(cuptiRangeProfilerEnable(&enable));
    counting->profiler = enable.pRangeProfilerObject;
    if (!image_load(counting))
        TRY_CUPTI(image_create(counting));
    config.pRangeProfilerObject = counting->profiler;
    config.pConfig = metric_set_config(counting->set, &config.configSize);
    config.pCounterDataImage = counting->image;
    config.counterDataImageSize = counting->passed.bytes;
    config.range = CUPTI_UserRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = 1;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.passIndex = counting->passed.pass;
    config.targetNestingLevel = (uint16_t)counting->passed.level;
    TRY_CUPTI(cuptiRangeProfilerSetConfig(&config));
    start.pRangeProfilerObject = counting->profiler;
    return cuptiRangeProfilerStart(&start);
}

static CUptiResult start_as(struct counting *counting, unsigned tensors)
{
    TRY_CUPTI(cupti_attach());
    TRY_CUPTI(read_device(counting));
    counting->family = chip_family_find(counting->chip);
    if (!counting->family)
        return CUPTI_ERROR_NOT_SUPPORTED;
    TRY_CUPTI(make_set(counting, tensors));
    return begin(counting);
}

static void counting_free(struct counting *counting)
{
    metric_set_destroy(counting->set);
    free(counting->availability);
    free(counting->image);
    free(counting);
}

struct counting *counting_start(CUcontext context, unsigned tensors, const char *image,
                                struct outcome *refusal)
{
    struct counting *counting = calloc(1, sizeof *counting);
    if (!counting) {
        outcome_set(refusal, COUNTED_REFUSED, "no memory");
        return NULL;
    }
    counting->context = context;
    counting->image_path = image;
    CUptiResult code = start_as(counting, tensors);
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

size_t counting_passes(const struct counting *counting)
{
    return metric_set_passes(counting->set);
}

bool counting_open(struct counting *counting, struct outcome *refusal)
{
    PARAMETERS(push, CUpti_RangeProfiler_PushRange);
    push.pRangeProfilerObject = counting->profiler;
    push.pRangeName = "region";
    CUptiResult code = cuptiRangeProfilerPushRange(&push);
    if (code != CUPTI_SUCCESS)
        refusal_set(code, "range profiler", refusal);
    return code == CUPTI_SUCCESS;
}

static CUptiResult finish(struct counting *counting, bool *last, size_t *dropped)
{
    PARAMETERS(pop, CUpti_RangeProfiler_PopRange);
    PARAMETERS(stop, CUpti_RangeProfiler_Stop);
    PARAMETERS(data, CUpti_RangeProfiler_DecodeData);
    pop.pRangeProfilerObject = counting->profiler;
    TRY_CUPTI(cuptiRangeProfilerPopRange(&pop));
    stop.pRangeProfilerObject = counting->profiler;
    TRY_CUPTI(cuptiRangeProfilerStop(&stop));
    counting->passed.pass = stop.passIndex;
    counting->passed.level = stop.targetNestingLevel;
    *last = stop.isAllPassSubmitted;
    data.pRangeProfilerObject = counting->profiler;
    TRY_CUPTI(cuptiRangeProfilerDecodeData(&data));
    *dropped = data.numOfRangeDropped;
    return CUPTI_SUCCESS;
}

static CUptiResult evaluate(struct counting *counting, double values[QUANTITY_COUNT])
{
    double metrics[FORMULAS_METRICS_MAX];
    size_t count;
    const char *const *names = metric_set_metrics(counting->set, &count);
    TRY_CUPTI(
        metric_set_evaluate(counting->set, counting->image, counting->passed.bytes, 0, metrics));
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        values[i] = formulas_evaluate(counting->family, (enum quantity)i, names, metrics, count);
    return CUPTI_SUCCESS;
}

bool counting_close(struct counting *counting, bool *last, double values[QUANTITY_COUNT],
                    struct outcome *refusal)
{
    size_t dropped = 0;
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        values[i] = NAN;
    CUptiResult code = finish(counting, last, &dropped);
    if (code == CUPTI_SUCCESS && *last)
        code = evaluate(counting, values);
    if (code != CUPTI_SUCCESS)
        refusal_set(code, "range profiler", refusal);
    else if (dropped > 0)
        outcome_set(refusal, COUNTED_INCOMPLETE, "the region was dropped by CUPTI");
    else if (!*last && !image_save(counting))
        outcome_set(refusal, COUNTED_INCOMPLETE, "%s cannot be written", counting->image_path);
    else
        return true;
    return false;
}
