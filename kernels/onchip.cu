#include "kernels.h"

#include <limits.h>

/* A warp takes one piece at a time: 64 bytes for each lane, in loads of 4, 8 or 16 bytes that are
 * all in flight together. A load of the whole warp is 128, 256 or 512 contiguous bytes. L1 and
 * shared memory deliver 128 bytes a cycle, so a piece takes 16 cycles. In 16 cycles the four
 * schedulers can issue 64 instructions; a piece needs at most about 40. */
static const int lane_bytes = 64, piece_bytes = 32 * lane_bytes;

static __device__ uint32_t fold(uint32_t x)
{
    return x;
}
static __device__ uint32_t fold(uint2 x)
{
    return x.x ^ x.y;
}
static __device__ uint32_t fold(uint4 x)
{
    return x.x ^ x.y ^ x.z ^ x.w;
}

/* Loads are inline PTX, so that the compiler changes none of them. Global loads go through L1 by
 * default. */
static __device__ void load(uint32_t &x, uint64_t at)
{
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(at));
}
#define LOADS(space, address, letter)                                                              \
    static __device__ void load(uint2 &x, address at)                                              \
    {                                                                                              \
        asm volatile("ld." space ".v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : letter(at));   \
    }                                                                                              \
    static __device__ void load(uint4 &x, address at)                                              \
    {                                                                                              \
        asm volatile("ld." space ".v4.u32 {%0, %1, %2, %3}, [%4];"                                 \
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)                                  \
                     : letter(at));                                                                \
    }
LOADS("global", uint64_t, "l")
LOADS("shared", uint32_t, "r")

/* The type of a lane's address, and of one load. */
template <typename loaded> struct from_l1 {
    typedef uint64_t address;
    typedef loaded word;
};
template <typename loaded> struct from_shared {
    typedef uint32_t address;
    typedef loaded word;
};

/* Returns the address of the block's own part of the data. */
template <typename word>
static __device__ uint64_t begin_of(from_l1<word>, const uint4 *data, uint32_t bytes)
{
    return __cvta_generic_to_global(data) + (uint64_t)blockIdx.x * bytes;
}
template <typename word>
static __device__ uint32_t begin_of(from_shared<word>, const uint4 *data, uint32_t bytes)
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
    typedef typename memory::word word;
    const int loads = lane_bytes / (int)sizeof(word), sums = 4;
    typename memory::address begin =
        begin_of(memory(), data, bytes) + threadIdx.x % 32 * (int)sizeof(word);
    typename memory::address end = begin + bytes;
    typename memory::address at = begin + threadIdx.x / 32 * piece_bytes;
    uint32_t step = blockDim.x / 32 * piece_bytes, sum[sums] = {};
#pragma unroll 1
    for (int n = 0; n < pieces; ++n) {
        word x[loads];
#pragma unroll
        for (int i = 0; i < loads; ++i)
            load(x[i], at + i * 32 * (int)sizeof(word));
#pragma unroll
        for (int i = 0; i < loads; ++i)
            sum[i % sums] ^= fold(x[i]);
        at += step;
        at = at < end ? at : at - bytes;
    }
    if (out) /* never true, but the compiler does not know that */
        *out = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
}

/* Sets the carve-out to the largest L1, or to the largest shared memory, so that as many blocks as
 * possible fit. */
template <typename memory>
static cudaError_t launch(const void *data, size_t bytes, int repeat, int blocks, int threads,
                          cudaStream_t stream)
{
    const bool is_shared = sizeof(typename memory::address) == sizeof(uint32_t);
    int64_t round = (int64_t)(threads / 32) * piece_bytes; /* bytes that a block reads at a time */
    if (threads < 32 || threads % 32 != 0 || bytes > INT_MAX || bytes % round != 0 ||
        (int64_t)bytes / round * repeat > INT_MAX)
        return cudaErrorInvalidValue;
    int pieces = (int)((int64_t)bytes / round * repeat); /* number of pieces of each warp */
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
    {ROOF_L1_READ, "16 bytes a load", launch<from_l1<uint4>>},
    {ROOF_L1_READ, "8 bytes a load", launch<from_l1<uint2>>},
    {ROOF_L1_READ, "4 bytes a load", launch<from_l1<uint32_t>>},
    {ROOF_SHARED_READ, "16 bytes a load", launch<from_shared<uint4>>},
    {ROOF_SHARED_READ, "8 bytes a load", launch<from_shared<uint2>>},
    {ROOF_KINDS, NULL, NULL},
};
