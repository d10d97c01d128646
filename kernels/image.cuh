/* A build for an older chip leaves out instructions that the chip does not have, and the kernel
 * must then not be run. CUDA does not prevent that: a newer device of the same generation takes
 * code that was built for the older one. */
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

/* cudaErrorNoKernelImageForDevice where the build has no code of `kernel` for this device that was
 * made for compute capability `least` (90 for 9.0) or a later one. */
static inline cudaError_t image_check(const void *kernel, int least)
{
    cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess)
        return cudaGetLastError();
    return attributes.ptxVersion < least ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}
