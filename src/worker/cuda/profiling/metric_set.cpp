#include "worker/cuda/profiling/metric_set.h"

#include <cstdlib>
#include <cupti_profiler_host.h>

struct metric_set {
    CUpti_Profiler_Host_Object *host; /* owned */
    const char **metrics;
    size_t count;
    uint8_t *config; /* owned */
    size_t config_size, passes;
};

/* CUPTI's parameter blocks begin with their own size. */
template <typename T> static T sized(size_t size)
{
    T parameters = {};
    parameters.structSize = size;
    return parameters;
}
#define PARAMETERS(name, type) auto name = sized<type##_Params>(type##_Params_STRUCT_SIZE)
#define TRY(call)                                                                                  \
    do {                                                                                           \
        CUptiResult result = (call);                                                               \
        if (result != CUPTI_SUCCESS)                                                               \
            return result;                                                                         \
    } while (0)

static CUptiResult add_metrics(struct metric_set *set)
{
    PARAMETERS(add, CUpti_Profiler_Host_ConfigAddMetrics);
    add.pHostObject = set->host;
    add.ppMetricNames = set->metrics;
    add.numMetrics = set->count;
    return cuptiProfilerHostConfigAddMetrics(&add);
}

static CUptiResult make_config(struct metric_set *set)
{
    PARAMETERS(size, CUpti_Profiler_Host_GetConfigImageSize);
    size.pHostObject = set->host;
    TRY(cuptiProfilerHostGetConfigImageSize(&size));
    set->config_size = size.configImageSize;
    set->config = static_cast<uint8_t *>(malloc(set->config_size));
    if (!set->config)
        return CUPTI_ERROR_OUT_OF_MEMORY;

    PARAMETERS(image, CUpti_Profiler_Host_GetConfigImage);
    image.pHostObject = set->host;
    image.configImageSize = set->config_size;
    image.pConfigImage = set->config;
    TRY(cuptiProfilerHostGetConfigImage(&image));

    PARAMETERS(passes, CUpti_Profiler_Host_GetNumOfPasses);
    passes.configImageSize = set->config_size;
    passes.pConfigImage = set->config;
    TRY(cuptiProfilerHostGetNumOfPasses(&passes));
    set->passes = passes.numOfPasses;
    return CUPTI_SUCCESS;
}

static CUptiResult open_set(struct metric_set *set, const char *chip, const uint8_t *availability)
{
    PARAMETERS(open, CUpti_Profiler_Host_Initialize);
    open.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    open.pChipName = chip;
    open.pCounterAvailabilityImage = availability;
    TRY(cuptiProfilerHostInitialize(&open));
    set->host = open.pHostObject;
    TRY(add_metrics(set));
    return make_config(set);
}

CUptiResult metric_set_create(const char *chip, const uint8_t *availability,
                              const char *const *metrics, size_t count, struct metric_set **set)
{
    auto result = static_cast<struct metric_set *>(calloc(1, sizeof(struct metric_set)));
    if (!result)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    result->metrics = const_cast<const char **>(metrics);
    result->count = count;
    CUptiResult code = open_set(result, chip, availability);
    if (code == CUPTI_SUCCESS)
        *set = result;
    else
        metric_set_destroy(result);
    return code;
}

void metric_set_destroy(struct metric_set *set)
{
    if (!set)
        return;
    if (set->host) {
        PARAMETERS(close, CUpti_Profiler_Host_Deinitialize);
        close.pHostObject = set->host;
        cuptiProfilerHostDeinitialize(&close);
    }
    free(set->config);
    free(set);
}

const char *const *metric_set_metrics(const struct metric_set *set, size_t *count)
{
    *count = set->count;
    return set->metrics;
}

const uint8_t *metric_set_config(const struct metric_set *set, size_t *size)
{
    *size = set->config_size;
    return set->config;
}

size_t metric_set_passes(const struct metric_set *set)
{
    return set->passes;
}

CUptiResult metric_set_evaluate(struct metric_set *set, const uint8_t *image, size_t size,
                                size_t range, double *values)
{
    PARAMETERS(evaluate, CUpti_Profiler_Host_EvaluateToGpuValues);
    evaluate.pHostObject = set->host;
    evaluate.pCounterDataImage = image;
    evaluate.counterDataImageSize = size;
    evaluate.rangeIndex = range;
    evaluate.ppMetricNames = set->metrics;
    evaluate.numMetrics = set->count;
    evaluate.pMetricValues = values;
    return cuptiProfilerHostEvaluateToGpuValues(&evaluate);
}

CUptiResult metric_set_chips(const char *const **chips, size_t *count)
{
    PARAMETERS(known, CUpti_Profiler_Host_GetSupportedChips);
    TRY(cuptiProfilerHostGetSupportedChips(&known));
    *chips = known.ppChipNames;
    *count = known.numChips;
    return CUPTI_SUCCESS;
}
