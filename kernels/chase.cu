#include "kernels.h"

/* Chains the lines in the order of a linear congruential generator whose period is `lines`. */
static __global__ void link(uint64_t *words, uint32_t lines)
{
    uint64_t *next = words + ((1664525 * blockIdx.x + 1013904223) & (lines - 1)) * blockDim.x;
    words[blockIdx.x * blockDim.x + threadIdx.x] = (uint64_t)(next + threadIdx.x);
}

static __device__ void follow(uint64_t &at)
{
    asm volatile("ld.global.u64 %0, [%0];" : "+l"(at));
}
static __device__ void follow(uint32_t &at)
{
    asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at) : : "memory");
}

/* In shared memory, which has no cache, each lane loads one word that holds its own address. */
template <typename address> static __global__ void chase(uint64_t *place, int64_t loads)
{
    __shared__ uint32_t words[CHASE_LANES];
    uint32_t own = (uint32_t)__cvta_generic_to_shared(&words[threadIdx.x]);
    words[threadIdx.x] = own;
    address at = sizeof at == sizeof own ? (address)own : (address)place[threadIdx.x];
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

cudaError_t kernel_chase(bool is_shared, uint64_t *place, int64_t loads, cudaStream_t stream)
{
    (is_shared ? chase<uint32_t> : chase<uint64_t>)<<<1, CHASE_LANES, 0, stream>>>(place, loads);
    return cudaGetLastError();
}
