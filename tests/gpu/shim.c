/* Preloaded before CUPTI: makes it refuse. ROOFSWEEP_SHIM_CODE is the CUptiResult of
 * cuptiProfilerDeviceSupported; or, if ROOFSWEEP_SHIM_AFTER=N is set as well, of the N+1st and all
 * later calls of cuptiRangeProfilerEnable, while the device counts as supported. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>

static CUptiResult code(void)
{
    const char *text = getenv("ROOFSWEEP_SHIM_CODE");
    return text ? (CUptiResult)atoi(text) : CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params *parameters)
{
    CUptiResult (*next)(CUpti_Profiler_DeviceSupported_Params *);
    void *symbol = dlsym(RTLD_NEXT, "cuptiProfilerDeviceSupported");
    memcpy(&next, &symbol, sizeof next);
    if (code() != CUPTI_SUCCESS && !getenv("ROOFSWEEP_SHIM_AFTER"))
        return code();
    return next(parameters);
}

CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *parameters)
{
    static int calls;
    CUptiResult (*next)(CUpti_RangeProfiler_Enable_Params *);
    void *symbol = dlsym(RTLD_NEXT, "cuptiRangeProfilerEnable");
    const char *after = getenv("ROOFSWEEP_SHIM_AFTER");
    memcpy(&next, &symbol, sizeof next);
    if (after && calls++ >= atoi(after))
        return code();
    return next(parameters);
}
