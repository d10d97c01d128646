#include "worker/cuda/gpu/occupancy.h"

#include <limits.h>
#include <cuda_occupancy.h>

#include "model/field.h"

struct occupancy_limits occupancy_limits(const struct cudaDeviceProp *properties)
{
    return (struct occupancy_limits){
        .major = properties->major,
        .minor = properties->minor,
        .warp_threads = properties->warpSize,
        .block_threads = properties->maxThreadsPerBlock,
        .multiprocessor_threads = properties->maxThreadsPerMultiProcessor,
        .block_registers = properties->regsPerBlock,
        .multiprocessor_registers = properties->regsPerMultiprocessor,
        .block_shared = properties->sharedMemPerBlock,
        .block_shared_most = properties->sharedMemPerBlockOptin,
        .reserved_shared = properties->reservedSharedMemPerBlock,
        .multiprocessor_shared = properties->sharedMemPerMultiprocessor,
    };
}

static cudaOccDeviceProp properties_of(const struct occupancy_limits *limits)
{
    return (cudaOccDeviceProp){
        .computeMajor = limits->major,
        .computeMinor = limits->minor,
        .maxThreadsPerBlock = limits->block_threads,
        .maxThreadsPerMultiprocessor = limits->multiprocessor_threads,
        .regsPerBlock = limits->block_registers,
        .regsPerMultiprocessor = limits->multiprocessor_registers,
        .warpSize = limits->warp_threads,
        .sharedMemPerBlock = limits->block_shared,
        .sharedMemPerMultiprocessor = limits->multiprocessor_shared,
        .numSms = 1,
        .sharedMemPerBlockOptin = limits->block_shared_most,
        .reservedSharedMemPerBlock = limits->reserved_shared,
    };
}

/* Of what the driver gave to shared memory before the launch. The formula supposes all that it
 * could give. */
static int64_t blocks_in_room(const cudaOccResult *result, int64_t room, int64_t blocks)
{
    int64_t each = (int64_t)result->allocatedSharedMemPerBlock;
    int64_t fit = each > 0 && room > 0 ? room / each : blocks;
    return fit > 0 && fit < blocks ? fit : blocks;
}

int64_t occupancy_blocks(const struct occupancy_limits *limits,
                         const struct occupancy_kernel *kernel)
{
    const cudaOccDeviceProp properties = properties_of(limits);
    const cudaOccFuncAttributes attributes = {
        .maxThreadsPerBlock = INT_MAX,
        .numRegs = (int)kernel->registers,
        .sharedSizeBytes = (size_t)kernel->static_shared,
        .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
        .maxDynamicSharedSizeBytes = limits->block_shared_most,
        .numBlockBarriers = 1,
    };
    const cudaOccDeviceState state = {CACHE_PREFER_NONE, SHAREDMEM_CARVEOUT_DEFAULT};
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state,
                                                (int)kernel->threads,
                                                (size_t)kernel->dynamic_shared) != CUDA_OCC_SUCCESS)
        return FIELD_MISSING;
    return blocks_in_room(&result, kernel->shared_room, result.activeBlocksPerMultiprocessor);
}
