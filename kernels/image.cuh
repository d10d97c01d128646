/* Instructions that older chips have not are left out of kernels built for those, and a newer
 * device of the same generation takes such a build for its own. */
#ifndef ROOFSWEEP_IMAGE_CUH
#define ROOFSWEEP_IMAGE_CUH

#include <cuda_runtime_api.h>

/* cudaErrorNoKernelImageForDevice where the build has no code of `kernel` for this device that was
 * made for compute capability `least` (90 for 9.0) or a later one. */
static inline cudaError_t image_check(const void *kernel, int least)
{
    cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess)
        return cudaGetLastError();
    return attributes.ptxVersion < least ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}

#endif
