#include "worker/cuda/profiling/cupti_process.h"

#include <stddef.h>
#include <cupti.h>
#include <cupti_profiler_target.h>

static void CUPTIAPI no_buffer(uint8_t **buffer, size_t *size, size_t *records)
{
    *buffer = NULL;
    *size = *records = 0;
}

static void CUPTIAPI ignore_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                   size_t valid)
{
    (void)context, (void)stream, (void)buffer, (void)size, (void)valid;
}

CUptiResult cupti_attach(void)
{
    /* After cuptiFinalize the profiler does not find the driver again by itself:
     * cuptiProfilerInitialize then returns CUPTI_ERROR_NOT_INITIALIZED. This call does. */
    CUptiResult result = cuptiActivityRegisterCallbacks(no_buffer, ignore_buffer);
    if (result != CUPTI_SUCCESS)
        return result;
    CUpti_Profiler_Initialize_Params initialize = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE,
                                                   NULL};
    return cuptiProfilerInitialize(&initialize);
}

void cupti_detach(void)
{
    cuptiFinalize();
}
