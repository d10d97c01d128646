#include "worker/cuda/profiling/residency.h"

#include <limits.h>
#include <cuda.h>

#include "model/field.h"

cudaOccDeviceProp residency_limits(int device, int (*attribute)(int device, int number))
{
#define LIMIT(name) attribute(device, CU_DEVICE_ATTRIBUTE_##name)
    return (cudaOccDeviceProp){
        .computeMajor = LIMIT(COMPUTE_CAPABILITY_MAJOR),
        .computeMinor = LIMIT(COMPUTE_CAPABILITY_MINOR),
        .maxThreadsPerBlock = LIMIT(MAX_THREADS_PER_BLOCK),
        .maxThreadsPerMultiprocessor = LIMIT(MAX_THREADS_PER_MULTIPROCESSOR),
        .regsPerBlock = LIMIT(MAX_REGISTERS_PER_BLOCK),
        .regsPerMultiprocessor = LIMIT(MAX_REGISTERS_PER_MULTIPROCESSOR),
        .warpSize = LIMIT(WARP_SIZE),
        .sharedMemPerBlock = (size_t)LIMIT(MAX_SHARED_MEMORY_PER_BLOCK),
        .sharedMemPerMultiprocessor = (size_t)LIMIT(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        .numSms = LIMIT(MULTIPROCESSOR_COUNT),
        .sharedMemPerBlockOptin = (size_t)LIMIT(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        .reservedSharedMemPerBlock = (size_t)LIMIT(RESERVED_SHARED_MEMORY_PER_BLOCK),
    };
#undef LIMIT
}

int64_t residency_blocks(const struct traced_kernel *traced, const cudaOccDeviceProp *limits,
                         int64_t *limit)
{
    const struct kernel *k = &traced->kernel;
    const cudaOccFuncAttributes attributes = {
        .maxThreadsPerBlock = INT_MAX,
        .numRegs = (int)k->registers,
        .sharedSizeBytes = (size_t)k->static_shared,
        .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
        .maxDynamicSharedSizeBytes = limits->sharedMemPerBlockOptin,
        .numBlockBarriers = 1,
    };
    const cudaOccDeviceState state = {CACHE_PREFER_NONE, SHAREDMEM_CARVEOUT_DEFAULT};
    cudaOccResult result;
    int64_t blocks = FIELD_MISSING;
    *limit = FIELD_MISSING;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, limits, &attributes, &state,
                                                (int)(k->block_x * k->block_y * k->block_z),
                                                (size_t)k->dynamic_shared) == CUDA_OCC_SUCCESS) {
        blocks = result.activeBlocksPerMultiprocessor;
        *limit = (int64_t)result.limitingFactors;
    }
    if (k->cluster > 1)
        return traced->clusters_most > 0 ? k->cluster * traced->clusters_most : FIELD_MISSING;
    return blocks > 0 ? blocks * limits->numSms : FIELD_MISSING;
}
