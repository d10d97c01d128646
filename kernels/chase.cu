#include "kernels.h"

/* The line after line i, in the order of a linear congruential generator with a full period. */
static __device__ uint32_t after(uint32_t i, uint32_t lines)
{
    return (1664525 * i + 1013904223) & (lines - 1);
}

static __global__ void link(uint64_t *words, uint32_t lines)
{
    uint64_t *line = words + after(blockIdx.x, lines) * blockDim.x;
    words[blockIdx.x * blockDim.x + threadIdx.x] = (uint64_t)(line + threadIdx.x);
}

static __device__ void follow(uint64_t &at)
{
    asm volatile("ld.global.u64 %0, [%0];" : "+l"(at));
}
static __device__ void follow(uint32_t &at)
{
    asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at) : : "memory");
}

/* With addresses of shared memory the chain has 64 lines there. */
template <typename address> static __global__ void chase(uint64_t *place, int64_t loads)
{
    const bool is_shared = sizeof(address) == sizeof(uint32_t);
    __shared__ uint32_t words[64][CHASE_LANES];
    for (int i = 0; i < 64 && is_shared; ++i)
        words[i][threadIdx.x] =
            (uint32_t)__cvta_generic_to_shared(&words[after(i, 64)][threadIdx.x]);
    address at = is_shared ? (address)words[0][threadIdx.x] : (address)place[threadIdx.x];
#pragma unroll 32
    for (int64_t i = 0; i < loads; ++i)
        follow(at);
    place[threadIdx.x] = at;
}

cudaError_t kernel_chain(uint64_t *words, int lines, cudaStream_t stream)
{
    link<<<lines + 1, CHASE_LANES, 0, stream>>>(words, lines);
    return cudaGetLastError();
}

cudaError_t kernel_chase(bool is_shared, uint64_t *words, int lines, int64_t loads,
                         cudaStream_t stream)
{
    uint64_t *place = words + (size_t)lines * CHASE_LANES;
    (is_shared ? chase<uint32_t> : chase<uint64_t>)<<<1, CHASE_LANES, 0, stream>>>(place, loads);
    return cudaGetLastError();
}
