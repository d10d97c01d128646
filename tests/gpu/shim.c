/* Preloaded before CUPTI: makes it refuse. ROOFSWEEP_SHIM_CODE is the CUptiResult of
 * cuptiProfilerDeviceSupported; or, if ROOFSWEEP_SHIM_AFTER=N is set as well, of the N+1st and all
 * later calls of cuptiRangeProfilerSetConfig, one a collection, while the device counts as
 * supported. ROOFSWEEP_SHIM_CALLS names a file that gets a byte for each of these calls. */
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

static void note_call(void)
{
    const char *path = getenv("ROOFSWEEP_SHIM_CALLS");
    FILE *calls = path ? fopen(path, "a") : NULL;
    if (calls) {
        fputc('.', calls);
        fclose(calls);
    }
}

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *parameters)
{
    static int calls;
    CUptiResult (*next)(CUpti_RangeProfiler_SetConfig_Params *);
    void *symbol = dlsym(RTLD_NEXT, "cuptiRangeProfilerSetConfig");
    const char *after = getenv("ROOFSWEEP_SHIM_AFTER");
    memcpy(&next, &symbol, sizeof next);
    note_call();
    if (after && calls++ >= atoi(after))
        return code();
    return next(parameters);
}
