/* A matrix product on tensor units. A block computes `tile` x `tile` elements of y, and each of its
 * four warps a quarter of them. Pieces of x and w with `depth` summands are copied to shared
 * memory, a few pieces ahead of the multiplication. A chunk is 16 bytes, 8 elements. A
 * multiprocessor runs two blocks: while one waits, the other computes. One block of twice the size
 * is slower. */
#include "kernels.h"

#include "mma.cuh"
#include "model/workloads/matmul.h"

static const int tile = 128, depth = 64, warp_tile = 64, threads = 128, stages = 3;
static const int chunk = 8, chunks_x = depth / chunk, chunks_w = tile / chunk;
static const int fragments_x = warp_tile / 16, fragments_w = warp_tile / 8;
static const int piece_chunks = tile * chunks_x + depth * chunks_w;

/* A chunk's place in a piece, which holds x and then w. Columns are permuted by the row's number,
 * so that one column of eight rows falls on all banks. */
static __device__ int place_x(int row, int column)
{
    return row * chunks_x + (column ^ row % 8);
}
static __device__ int place_w(int row, int column)
{
    return tile * chunks_x + row * chunks_w + (column ^ row % 8);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/* ---- instructions ---- */

static __device__ uint32_t address_of(const uint4 *shared)
{
    return (uint32_t)__cvta_generic_to_shared(shared);
}

/* Begins a copy of a chunk; if not `inside`, the chunk is zeros. */
static __device__ void copy_begin(uint4 *shared, const void *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address_of(shared)),
                 "l"(from), "r"(inside ? 16 : 0)
                 : "memory");
}

/* ---- a piece ---- */

template <typename T> struct product {
    const T *x, *w;
    T *y;
    int64_t m, n, k;
};

/* A thread copies one chunk of every `rows_x`th row of x and of every `rows_w`th row of w. All
 * chunks of a thread have the same permuted column, since rows_x and rows_w are multiples of 8. */
template <typename T> struct copier {
    static const int rows_x = threads / chunks_x, rows_w = threads / chunks_w;
    const T *x, *w, *none; /* none: a valid address, for copies of zeros */
    int64_t line_x, line_w;
    int left;   /* number of rows of x from the thread's first row to the end */
    bool there; /* the thread's columns of w are inside the matrix */

    __device__ copier(const product<T> &p, int64_t row, int64_t column)
    {
        const int r = threadIdx.x / chunks_x, c = threadIdx.x % chunks_w * chunk;
        line_x = p.k;
        line_w = p.n;
        x = p.x + (row + r) * line_x + threadIdx.x % chunks_x * chunk;
        w = p.w + threadIdx.x / chunks_w * line_w + column + c;
        none = p.x;
        left = p.m - row > tile ? tile - r : (int)(p.m - row) - r;
        there = column + c < p.n;
    }

    __device__ void copy(uint4 *shared)
    {
        const int to_x = place_x(threadIdx.x / chunks_x, threadIdx.x % chunks_x);
        const int to_w = place_w(threadIdx.x / chunks_w, threadIdx.x % chunks_w);
#pragma unroll
        for (int i = 0; i < chunks_x; ++i) {
            bool inside = i * rows_x < left;
            copy_begin(&shared[to_x + i * rows_x * chunks_x],
                       inside ? x + i * rows_x * line_x : none, inside);
        }
#pragma unroll
        for (int i = 0; i < depth / rows_w; ++i)
            copy_begin(&shared[to_w + i * rows_w * chunks_w],
                       there ? w + i * rows_w * line_w : none, there);
        x += chunks_x * chunk;
        w += depth * line_w;
    }
};

typedef float warp_sums[fragments_x][fragments_w][4];

template <typename T>
static __device__ void piece_multiply(const uint4 *shared, int row, int column, warp_sums sums)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < depth; k += 16) {
        uint32_t x[fragments_x][4];
#pragma unroll
        for (int i = 0; i < fragments_x; ++i)
            matrices_load(
                x[i],
                address_of(&shared[place_x(row + i * 16 + lane % 16, k / chunk + lane / 16)]));
#pragma unroll
        for (int j = 0; j < fragments_w; j += 2) {
            uint32_t w[4];
            matrices_load_transposed(
                w, address_of(&shared[place_w(k + lane % 16, column / chunk + j + lane / 16)]));
#pragma unroll
            for (int i = 0; i < fragments_x; ++i) {
                multiply(T(), sums[i][j], x[i], w);
                multiply(T(), sums[i][j + 1], x[i], w + 2);
            }
        }
    }
}

template <typename T>
static __device__ void sums_write(const product<T> &p, int64_t row, int64_t column,
                                  const warp_sums sums)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < fragments_x; ++i)
#pragma unroll
        for (int j = 0; j < fragments_w; ++j)
#pragma unroll
            for (int part = 0; part < 2; ++part) {
                int64_t r = row + i * 16 + part * 8 + lane / 4, c = column + j * 8 + lane % 4 * 2;
                T both[2] = {T(sums[i][j][part * 2]), T(sums[i][j][part * 2 + 1])};
                if (r < p.m && c < p.n)
                    *(uint32_t *)&p.y[r * p.n + c] = *(const uint32_t *)both;
            }
}

#endif

/* ---- the product ---- */

template <typename T>
__global__ void __launch_bounds__(threads, 2) tiled_product(const product<T> p)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    extern __shared__ uint4 pieces[];
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * warp_tile, warp_column = warp % 2 * warp_tile;
    const int64_t row = (int64_t)blockIdx.x * tile, column = (int64_t)blockIdx.y * tile;
    const int steps = (int)(p.k / depth);
    copier<T> from(p, row, column);
    warp_sums sums = {};
    for (int i = 0; i < stages - 1; ++i) {
        if (i < steps)
            from.copy(&pieces[i * piece_chunks]);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group %0;" ::"n"(stages - 2) : "memory");
        __syncthreads();
        if (step + stages - 1 < steps)
            from.copy(&pieces[(step + stages - 1) % stages * piece_chunks]);
        asm volatile("cp.async.commit_group;" ::: "memory");
        piece_multiply<T>(&pieces[step % stages * piece_chunks], warp_row, warp_column, sums);
    }
    sums_write(p, row + warp_row, column + warp_column, sums);
#endif
}

template <typename T>
static cudaError_t launch(void *y, const void *x, const void *w, int64_t m, int64_t n, int64_t k,
                          cudaStream_t stream)
{
    const product<T> p = {(const T *)x, (const T *)w, (T *)y, m, n, k};
    const int bytes = stages * piece_chunks * 16;
    const dim3 blocks((unsigned)((m + tile - 1) / tile), (unsigned)((n + tile - 1) / tile));
    cudaError_t code = cudaFuncSetAttribute((const void *)tiled_product<T>,
                                            cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (code != cudaSuccess)
        return code;
    tiled_product<T><<<blocks, threads, bytes, stream>>>(p);
    return cudaGetLastError();
}

cudaError_t kernel_matmul_tiled(enum precision precision, void *y, const void *x, const void *w,
                                int64_t m, int64_t n, int64_t k, cudaStream_t stream)
{
    if (m % MATMUL_TILED_LINES || n % MATMUL_TILED_LINES || k % MATMUL_TILED_DEPTH)
        return cudaErrorInvalidValue;
    return precision == PRECISION_FP16   ? launch<__half>(y, x, w, m, n, k, stream)
           : precision == PRECISION_BF16 ? launch<__nv_bfloat16>(y, x, w, m, n, k, stream)
                                         : cudaErrorInvalidValue;
}
