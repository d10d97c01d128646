/* This library is preloaded, so that calls of CUPTI fail. cuptiProfilerDeviceSupported returns the
 * CUptiResult ROOFSWEEP_SHIM_CODE. With ROOFSWEEP_SHIM_AFTER=N only cuptiRangeProfilerSetConfig
 * fails: after N good calls it returns this code. Each collection calls it once.
 * ROOFSWEEP_SHIM_CALLS names a file that gets a byte for each of these calls. */
#include <dlfcn.h>
#include <stdio.h>
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

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *parameters)
{
    static int calls;
    CUptiResult (*next)(CUpti_RangeProfiler_SetConfig_Params *);
    void *symbol = dlsym(RTLD_NEXT, "cuptiRangeProfilerSetConfig");
    const char *after = getenv("ROOFSWEEP_SHIM_AFTER"), *path = getenv("ROOFSWEEP_SHIM_CALLS");
    FILE *file = path ? fopen(path, "a") : NULL;
    memcpy(&next, &symbol, sizeof next);
    if (file) {
        fputc('.', file);
        fclose(file);
    }
    if (after && calls++ >= atoi(after))
        return code();
    return next(parameters);
}
