#include "kernels.h"

#include <limits.h>

/* A warp takes one piece at a time: `loads` accesses of 16 bytes a lane, each of 512 bytes in one
 * piece, which L1 and shared memory answer in four cycles of 128 bytes. In the same four cycles the
 * four schedulers issue sixteen instructions; a load costs about five, with all that is around it.
 */
static const int loads = 4, piece_bytes = loads * 32 * 16;

/* Inline PTX, so that every load is made, as it stands: through L1, which is the default. */
struct from_l1 {
    typedef uint64_t address;
    static __device__ uint4 load(address at, int offset)
    {
        uint4 x;
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "l"(at + offset));
        return x;
    }
};
struct from_shared {
    typedef uint32_t address;
    static __device__ uint4 load(address at, int offset)
    {
        uint4 x;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "r"(at + offset));
        return x;
    }
};

/* Where the block's own bytes begin. */
static __device__ from_l1::address begin_of(from_l1, const uint4 *data, uint32_t bytes)
{
    return __cvta_generic_to_global(data) + (uint64_t)blockIdx.x * bytes;
}
static __device__ from_shared::address begin_of(from_shared, const uint4 *data, uint32_t bytes)
{
    extern __shared__ uint4 copy[];
    const uint4 *own = data + (size_t)blockIdx.x * (bytes / sizeof *data);
    for (uint32_t i = threadIdx.x; i < bytes / sizeof *data; i += blockDim.x)
        copy[i] = own[i];
    __syncthreads();
    return (uint32_t)__cvta_generic_to_shared(copy);
}

template <typename memory>
__global__ void __launch_bounds__(1024)
    go_round(const uint4 *data, uint32_t bytes, int pieces, uint32_t *out)
{
    typename memory::address begin = begin_of(memory(), data, bytes) + threadIdx.x % 32 * 16;
    typename memory::address end = begin + bytes;
    typename memory::address at = begin + threadIdx.x / 32 * piece_bytes;
    uint32_t step = blockDim.x / 32 * piece_bytes, sum[loads] = {};
#pragma unroll 1
    for (int n = 0; n < pieces; ++n) {
        uint4 x[loads];
#pragma unroll
        for (int i = 0; i < loads; ++i)
            x[i] = memory::load(at, i * 512);
#pragma unroll
        for (int i = 0; i < loads; ++i)
            sum[i] ^= x[i].x ^ x[i].y ^ x[i].z ^ x[i].w;
        at += step;
        at = at < end ? at : at - bytes;
    }
    if (out) /* never, but the compiler cannot know */
        *out = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
}

/* As much L1 as there can be, or shared memory for as many blocks as fit. */
template <typename memory>
static cudaError_t launch(const void *data, size_t bytes, int repeat, int blocks, int threads,
                          cudaStream_t stream)
{
    const bool is_shared = sizeof(typename memory::address) == sizeof(uint32_t);
    int64_t round =
        (int64_t)(threads / 32) * piece_bytes; /* bytes that the block takes at a time */
    if (threads < 32 || threads % 32 != 0 || bytes > INT_MAX || bytes % round != 0 ||
        (int64_t)bytes / round * repeat > INT_MAX)
        return cudaErrorInvalidValue;
    int pieces = (int)((int64_t)bytes / round * repeat); /* of each warp */
    cudaFuncSetAttribute(go_round<memory>, cudaFuncAttributePreferredSharedMemoryCarveout,
                         is_shared ? cudaSharedmemCarveoutMaxShared : cudaSharedmemCarveoutMaxL1);
    if (is_shared)
        cudaFuncSetAttribute(go_round<memory>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)bytes);
    go_round<memory><<<blocks, threads, is_shared ? bytes : 0, stream>>>(
        (const uint4 *)data, (uint32_t)bytes, pieces, NULL);
    return cudaGetLastError();
}

const struct onchip_kernel onchip_kernels[] = {
    {"l1 read", launch<from_l1>},
    {"shared read", launch<from_shared>},
    {NULL, NULL},
};
