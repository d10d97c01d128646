#include "worker/cuda/profiling/metric_set.h"

#include <cstdlib>
#include <cupti_profiler_host.h>

/* CUPTI's parameter blocks begin with their own size. */
template <typename T> static T sized(size_t size)
{
    T parameters = {};
    parameters.structSize = size;
    return parameters;
}
#define PARAMETERS(name, type) auto name = sized<type##_Params>(type##_Params_STRUCT_SIZE)
#define TRY_CUPTI(call)                                                                            \
    do {                                                                                           \
        CUptiResult result = (call);                                                               \
        if (result != CUPTI_SUCCESS)                                                               \
            return result;                                                                         \
    } while (0)

static CUptiResult open_set(struct metric_set *set, const char *chip, const uint8_t *availability)
{
    PARAMETERS(open, CUpti_Profiler_Host_Initialize);
    open.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    open.pChipName = chip;
    open.pCounterAvailabilityImage = availability;
    TRY_CUPTI(cuptiProfilerHostInitialize(&open));
    set->host = open.pHostObject;

    PARAMETERS(add, CUpti_Profiler_Host_ConfigAddMetrics);
    add.pHostObject = set->host;
    add.ppMetricNames = set->metrics;
    add.numMetrics = set->count;
    TRY_CUPTI(cuptiProfilerHostConfigAddMetrics(&add));

    PARAMETERS(size, CUpti_Profiler_Host_GetConfigImageSize);
    size.pHostObject = set->host;
    TRY_CUPTI(cuptiProfilerHostGetConfigImageSize(&size));
    set->config_size = size.configImageSize;
    set->config = static_cast<uint8_t *>(malloc(set->config_size));
    if (!set->config)
        return CUPTI_ERROR_OUT_OF_MEMORY;

    PARAMETERS(image, CUpti_Profiler_Host_GetConfigImage);
    image.pHostObject = set->host;
    image.configImageSize = set->config_size;
    image.pConfigImage = set->config;
    TRY_CUPTI(cuptiProfilerHostGetConfigImage(&image));

    PARAMETERS(passes, CUpti_Profiler_Host_GetNumOfPasses);
    passes.configImageSize = set->config_size;
    passes.pConfigImage = set->config;
    TRY_CUPTI(cuptiProfilerHostGetNumOfPasses(&passes));
    set->passes = passes.numOfPasses;
    return CUPTI_SUCCESS;
}

CUptiResult metric_set_open(struct metric_set *set, const char *chip, const uint8_t *availability)
{
    CUptiResult code = open_set(set, chip, availability);
    if (code != CUPTI_SUCCESS)
        metric_set_close(set);
    return code;
}

void metric_set_close(struct metric_set *set)
{
    if (set->host) {
        PARAMETERS(close, CUpti_Profiler_Host_Deinitialize);
        close.pHostObject = set->host;
        cuptiProfilerHostDeinitialize(&close);
    }
    free(set->config);
    set->host = NULL;
    set->config = NULL;
}

CUptiResult metric_set_evaluate(const struct metric_set *set, const uint8_t *image, size_t size,
                                size_t range, double *values)
{
    PARAMETERS(evaluate, CUpti_Profiler_Host_EvaluateToGpuValues);
    evaluate.pHostObject = set->host;
    evaluate.pCounterDataImage = image;
    evaluate.counterDataImageSize = size;
    evaluate.rangeIndex = range;
    evaluate.ppMetricNames = const_cast<const char **>(set->metrics);
    evaluate.numMetrics = set->count;
    evaluate.pMetricValues = values;
    return cuptiProfilerHostEvaluateToGpuValues(&evaluate);
}
