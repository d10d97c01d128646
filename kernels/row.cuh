/* Rows of a matrix, each of which belongs to a group of threads: blockDim.x of them, whole warps, as
 * many as a power of two. Where a group is one warp, a block has blockDim.y groups. */
#ifndef ROOFSWEEP_ROW_CUH
#define ROOFSWEEP_ROW_CUH

#include "piece.cuh"

struct row_larger {
    template <typename C> __device__ C operator()(C a, C b) const
    {
        return a > b ? a : b;
    }
};
struct row_sum {
    template <typename C> __device__ C operator()(C a, C b) const
    {
        return a + b;
    }
};

/* Of the group's values, for all of its threads. room: a block's shared memory, of 32 values; each warp
 * leaves one there. */
template <typename C, typename F> __device__ inline C row_reduce(C v, F combine, C *room)
{
    const int warps = blockDim.x / 32;
#pragma unroll
    for (int other = 16; other > 0; other /= 2)
        v = combine(v, __shfl_xor_sync(0xffffffff, v, other));
    if (warps == 1)
        return v;
    __syncthreads(); /* what was there has been read */
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = v;
    __syncthreads();
    v = room[threadIdx.x % warps];
    for (int other = warps / 2; other > 0; other /= 2)
        v = combine(v, __shfl_xor_sync(0xffffffff, v, other));
    return v;
}

/* A thread's part of a row in registers: pieces of `lanes` values, blockDim.x pieces apart. */
template <typename T, int lanes, int pieces> struct row_part {
    typedef typename computed<T>::type C;
    static const int count = lanes * pieces;
    C at[count];

    /* Whether value i is within the row. */
    static __device__ bool has(int i, int64_t columns)
    {
        return ((int64_t)(i / lanes) * blockDim.x + threadIdx.x) * lanes < columns;
    }
    /* columns: a multiple of lanes. `beyond` stands for what lies behind the row. */
    __device__ void load(const T *row, int64_t columns, C beyond)
    {
        piece<T, lanes> loaded[pieces];
#pragma unroll
        for (int p = 0; p < pieces; ++p)
            if (has(p * lanes, columns))
                loaded[p] = streamed((const piece<T, lanes> *)row + p * blockDim.x + threadIdx.x);
#pragma unroll
        for (int i = 0; i < count; ++i)
            at[i] = has(i, columns) ? (C)to_computed(loaded[i / lanes].at[i % lanes]) : beyond;
    }
    __device__ void store(T *row, int64_t columns) const
    {
#pragma unroll
        for (int p = 0; p < pieces; ++p) {
            piece<T, lanes> stored;
#pragma unroll
            for (int i = 0; i < lanes; ++i)
                stored.at[i] = to_stored<T>(at[p * lanes + i]);
            if (has(p * lanes, columns))
                ((piece<T, lanes> *)row)[p * blockDim.x + threadIdx.x] = stored;
        }
    }
};

/* Of a group, at most: with half as many in a multiprocessor as there can be, a thread has 128 registers. */
static const int row_threads = 512;

/* How rows are shared out: the smallest group that has a row in registers, `pieces` a thread. */
struct row_shape {
    int pieces; /* 1, 2 or 4; 0: no group is large enough */
    dim3 block;
    int64_t blocks;
};
static inline row_shape row_shape_of(int64_t rows, int64_t columns, int lanes)
{
    const int warps_most = row_threads / 32;
    int64_t needed = (columns + 32 * lanes - 1) / (32 * lanes); /* pieces of a warp's width */
    int warps = 1;
    while (warps < warps_most && needed > 4 * warps)
        warps *= 2;
    int pieces = needed <= warps ? 1 : needed <= 2 * warps ? 2 : needed <= 4 * warps ? 4 : 0;
    int groups = warps == 1 ? 8 / pieces : 1; /* small blocks, but not of a single piece a row */
    return {pieces, dim3(32 * warps, groups), (rows + groups - 1) / groups};
}

#endif
