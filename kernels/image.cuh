/* FROM_800(statement) is empty in code for compute capabilities below 8.0, which lack the
 * instruction. A kernel without its instruction must not run. CUDA does not prevent that: a newer
 * device of one generation takes code for an older one. So launchers call image_check. */
#pragma once

#include <cuda_runtime_api.h>

#define FROM_700(statement) statement
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define FROM_800(statement)
#else
#define FROM_800(statement) statement
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
#define FROM_890(statement)
#else
#define FROM_890(statement) statement
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define FROM_900(statement)
#else
#define FROM_900(statement) statement
#endif

/* cudaErrorNoKernelImageForDevice if the code of `kernel` for this device was built for a compute
 * capability below `least` (90 is 9.0). */
static inline cudaError_t image_check(const void *kernel, int least)
{
    cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess)
        return cudaGetLastError();
    return attributes.ptxVersion < least ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}
