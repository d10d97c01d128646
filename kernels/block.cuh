/* Reductions over the threads of a block that has one row of values. */
#pragma once

#include <stdint.h>

static const int row_threads = 256;

/* Returns the number of blocks for `rows` rows. With more rows than the largest grid has blocks, a
 * block takes several rows. */
static inline unsigned row_blocks(int64_t rows)
{
    return (unsigned)(rows < INT32_MAX ? rows : INT32_MAX);
}

struct larger {
    template <typename C> __device__ C operator()(C a, C b) const
    {
        return a > b ? a : b;
    }
};
struct added {
    template <typename C> __device__ C operator()(C a, C b) const
    {
        return a + b;
    }
};

/* Combines the values of all threads of the block; each thread gets the result. All threads of the
 * block must call this. */
template <typename C, typename F> __device__ inline C block_reduce(C v, F combine)
{
    __shared__ C of_warp[row_threads / 32];
#pragma unroll
    for (int other = 16; other > 0; other /= 2)
        v = combine(v, __shfl_xor_sync(0xffffffff, v, other));
    __syncthreads(); /* no thread still reads the values of the last call */
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = v;
    __syncthreads();
    v = of_warp[0];
    for (int warp = 1; warp < (int)blockDim.x / 32; ++warp)
        v = combine(v, of_warp[warp]);
    return v;
}
