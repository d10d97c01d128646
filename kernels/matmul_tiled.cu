#include "kernels.h"

#include "element.cuh"
#include "image.cuh"
#include "model/workloads/matmul.h"

/* A product by the tensor units, as one would write it second: a block makes `tile` x `tile`
 * elements of y, each of its four warps a quarter. Pieces of x and w, `depth` long along their
 * sums, are copied to shared memory, a few ahead of the one that is multiplied. What 16 bytes hold
 * is a "chunk": 8 elements. Two such blocks of a multiprocessor fill each other's waits; one block
 * of twice the size is slower.
 *
 * With 2:4 sparsity x has half of its elements, and `places` says where they were: the same code,
 * but for the instruction, which takes twice as many elements of w. */
static const int tile = 128, depth = 64, warp_tile = 64, threads = 128, stages = 3;
static const int chunk = 8, chunks_w = tile / chunk;
static const int fragments_x = warp_tile / 16, fragments_w = warp_tile / 8;

/* Of one piece of x: chunks in a row, all of them. */
template <bool sparse> struct piece {
    static const int chunks = depth / chunk / (sparse ? 2 : 1);
    static const int bytes = (tile * chunks + depth * chunks_w) * 16;
    /* Where a chunk of x lies, so that eight rows at once meet all banks. */
    static __device__ int place(int row, int column)
    {
        return row * chunks + (column ^ (sparse ? row / 2 % 4 : row % 8));
    }
    static __device__ int place_w(int row, int column)
    {
        return tile * chunks + row * chunks_w + (column ^ row % 8);
    }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/* ---- instructions ---- */

/* Zeros where nothing lies there. */
static __device__ void copy_begin(uint4 *shared, const void *from, bool there)
{
    unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
}

static __device__ void fragment_read(uint32_t out[4], const uint4 *shared)
{
    unsigned from = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(from)
                 : "memory");
}

static __device__ void fragment_read_transposed(uint32_t out[4], const uint4 *shared)
{
    unsigned from = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(from)
                 : "memory");
}

/* sums [16][8] += x [16][16] w [16][8]; sparse: x [16][32], half of it kept, w [32][8]. `pair`:
 * which two of four lanes have the places. */
#define MULTIPLY(type, name)                                                                       \
    static __device__ void multiply(type, float s[4], const uint32_t x[4], const uint32_t w[2])    \
    {                                                                                              \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." name "." name ".f32 "                \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"             \
                     : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])                              \
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w[0]), "r"(w[1]));          \
    }                                                                                              \
    template <int pair>                                                                            \
    static __device__ void multiply_sparse(type, float s[4], const uint32_t x[4],                  \
                                           const uint32_t w[4], uint32_t places)                   \
    {                                                                                              \
        asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32." name "." name   \
                     ".f32 "                                                                       \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, "  \
                     "%12, %13;"                                                                   \
                     : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])                              \
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w[0]), "r"(w[1]),           \
                       "r"(w[2]), "r"(w[3]), "r"(places), "n"(pair));                              \
    }
MULTIPLY(__half, "f16")
MULTIPLY(__nv_bfloat16, "bf16")

/* ---- a piece ---- */

template <typename T> struct product {
    const T *x, *w; /* x: kept ones, if sparse */
    const uint32_t *places;
    T *y;
    int64_t m, n, k;
};

/* What a thread copies of each piece: one chunk in every `rows_x` rows of x and `rows_w` of w, from
 * where it stands on. The rows between keep the place of a chunk within its row. */
template <typename T, bool sparse> struct copier {
    typedef piece<sparse> own;
    static const int rows_x = threads / own::chunks, rows_w = threads / chunks_w;
    const T *x, *w, *none; /* none: where nothing is read, but could be */
    int64_t line_x, line_w;
    int left;   /* rows of x from the thread's first one on */
    bool there; /* the columns of w */

    __device__ copier(const product<T> &p, int64_t row, int64_t column)
    {
        const int r = threadIdx.x / own::chunks, c = threadIdx.x % chunks_w * chunk;
        line_x = p.k / (sparse ? 2 : 1);
        line_w = p.n;
        x = p.x + (row + r) * line_x + threadIdx.x % own::chunks * chunk;
        w = p.w + threadIdx.x / chunks_w * line_w + column + c;
        none = p.x;
        left = p.m - row > tile ? tile - r : (int)(p.m - row) - r;
        there = column + c < p.n;
    }

    __device__ void copy(uint4 *shared)
    {
        const int place_x = own::place(threadIdx.x / own::chunks, threadIdx.x % own::chunks);
        const int place_w = own::place_w(threadIdx.x / chunks_w, threadIdx.x % chunks_w);
#pragma unroll
        for (int i = 0; i < own::chunks; ++i) {
            bool inside = i * rows_x < left;
            copy_begin(&shared[place_x + i * rows_x * own::chunks],
                       inside ? x + i * rows_x * line_x : none, inside);
        }
#pragma unroll
        for (int i = 0; i < depth / rows_w; ++i)
            copy_begin(&shared[place_w + i * rows_w * chunks_w],
                       there ? w + i * rows_w * line_w : none, there);
        x += own::chunks * chunk;
        w += depth * line_w;
    }
};

typedef float warp_sums[fragments_x][fragments_w][4];

template <typename T>
static __device__ void piece_multiply_dense(const uint4 *shared, int row, int column,
                                            warp_sums sums)
{
    typedef piece<false> own;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < depth; k += 16) {
        uint32_t x[fragments_x][4];
#pragma unroll
        for (int i = 0; i < fragments_x; ++i)
            fragment_read(x[i],
                          &shared[own::place(row + i * 16 + lane % 16, k / chunk + lane / 16)]);
#pragma unroll
        for (int j = 0; j < fragments_w; j += 2) {
            uint32_t w[4];
            fragment_read_transposed(
                w, &shared[own::place_w(k + lane % 16, column / chunk + j + lane / 16)]);
#pragma unroll
            for (int i = 0; i < fragments_x; ++i) {
                multiply(T(), sums[i][j], x[i], w);
                multiply(T(), sums[i][j + 1], x[i], w + 2);
            }
        }
    }
}

template <typename T, int half>
static __device__ void half_multiply_sparse(const uint4 *shared, int row, int column,
                                            const uint32_t *places, warp_sums sums)
{
    typedef piece<true> own;
    const int lane = threadIdx.x % 32;
    uint32_t x[fragments_x][4];
#pragma unroll
    for (int i = 0; i < fragments_x; ++i)
        fragment_read(x[i], &shared[own::place(row + i * 16 + lane % 16, half * 2 + lane / 16)]);
#pragma unroll
    for (int j = 0; j < fragments_w; ++j) {
        uint32_t w[4];
        fragment_read_transposed(w, &shared[own::place_w(half * 32 + lane, column / chunk + j)]);
#pragma unroll
        for (int i = 0; i < fragments_x; ++i)
            multiply_sparse<half>(T(), sums[i][j], x[i], w, places[i]);
    }
}

/* Where the places of the next piece are. Rows beyond the last are of zeros: their places may be
 * any. */
template <typename T>
static __device__ void places_find(const product<T> &p, int64_t row,
                                   const uint32_t *at[fragments_x])
{
    const int64_t steps = p.k / depth, last = p.m / 16 - 1;
#pragma unroll
    for (int i = 0; i < fragments_x; ++i) {
        int64_t fragment = row / 16 + i;
        at[i] = p.places + (fragment < last ? fragment : last) * steps * 32 + threadIdx.x % 32;
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

template <typename T, bool sparse>
__global__ void __launch_bounds__(threads, 2) tiled_product(const product<T> p)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef piece<sparse> own;
    extern __shared__ uint4 pieces[];
    const int warp = threadIdx.x / 32, size = own::bytes / 16;
    const int warp_row = warp / 2 * warp_tile, warp_column = warp % 2 * warp_tile;
    const int64_t row = (int64_t)blockIdx.x * tile, column = (int64_t)blockIdx.y * tile;
    const int steps = (int)(p.k / depth);
    copier<T, sparse> from(p, row, column);
    const uint32_t *at[fragments_x];
    warp_sums sums = {};
    if (sparse)
        places_find(p, row + warp_row, at);
    for (int i = 0; i < stages - 1; ++i) {
        if (i < steps)
            from.copy(&pieces[i * size]);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int step = 0; step < steps; ++step) {
        uint32_t places[fragments_x];
        if (sparse)
            for (int i = 0; i < fragments_x; ++i)
                places[i] = at[i][step * 32];
        asm volatile("cp.async.wait_group %0;" ::"n"(stages - 2) : "memory");
        __syncthreads();
        if (step + stages - 1 < steps)
            from.copy(&pieces[(step + stages - 1) % stages * size]);
        asm volatile("cp.async.commit_group;" ::: "memory");
        const uint4 *now = &pieces[step % stages * size];
        if (sparse) {
            half_multiply_sparse<T, 0>(now, warp_row, warp_column, places, sums);
            half_multiply_sparse<T, 1>(now, warp_row, warp_column, places, sums);
        } else {
            piece_multiply_dense<T>(now, warp_row, warp_column, sums);
        }
    }
    sums_write(p, row + warp_row, column + warp_column, sums);
#endif
}

template <typename T, bool sparse>
static cudaError_t product_launch(const product<T> &p, cudaStream_t stream)
{
    const int bytes = stages * piece<sparse>::bytes;
    const dim3 blocks((unsigned)((p.m + tile - 1) / tile), (unsigned)((p.n + tile - 1) / tile));
    cudaError_t code = cudaFuncSetAttribute((const void *)tiled_product<T, sparse>,
                                            cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (code != cudaSuccess)
        return code;
    tiled_product<T, sparse><<<blocks, threads, bytes, stream>>>(p);
    return cudaGetLastError();
}

template <typename T>
static cudaError_t launch(void *y, const void *x, const uint32_t *places, const void *w, int64_t m,
                          int64_t n, int64_t k, cudaStream_t stream)
{
    const product<T> p = {(const T *)x, (const T *)w, places, (T *)y, m, n, k};
    return places ? product_launch<T, true>(p, stream) : product_launch<T, false>(p, stream);
}

cudaError_t kernel_matmul_tiled(enum precision precision, void *y, const void *x,
                                const uint32_t *places, const void *w, int64_t m, int64_t n,
                                int64_t k, cudaStream_t stream)
{
    if (m % MATMUL_TILED_LINES || n % MATMUL_TILED_LINES || k % MATMUL_TILED_DEPTH)
        return cudaErrorInvalidValue;
    switch (precision) {
    case PRECISION_FP16:
        return launch<__half>(y, x, places, w, m, n, k, stream);
    case PRECISION_BF16:
        return launch<__nv_bfloat16>(y, x, places, w, m, n, k, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

/* ---- pruning ---- */

/* Two of four in each of four groups: copies them, and returns their places, two bits each. */
template <typename T> static __device__ uint32_t groups_prune(T *kept, const T *x)
{
    uint32_t places = 0;
    for (int group = 0; group < 4; ++group) {
        double values[4];
        int places_of_group[2];
        for (int i = 0; i < 4; ++i)
            values[i] = to_computed(x[group * 4 + i]);
        matmul_prune(values, places_of_group);
        for (int i = 0; i < 2; ++i) {
            kept[group * 2 + i] = x[group * 4 + places_of_group[i]];
            places |= (uint32_t)places_of_group[i] << (group * 4 + i * 2);
        }
    }
    return places;
}

/* A thread for each word of places: 16 columns of a row, and of the eighth row after it. */
template <typename T>
__global__ void prune(T *kept, uint32_t *places, const T *x, int64_t k, int64_t words)
{
    const int64_t steps = k / depth;
    int64_t word = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= words)
        return;
    int64_t lane = word % 32, step = word / 32 % steps;
    int64_t row = word / 32 / steps * 16 + lane / 4, column = step * depth + lane % 4 * 16;
    uint32_t both = 0;
    for (int i = 0; i < 2; ++i) {
        int64_t at = (row + 8 * i) * k + column;
        both |= groups_prune(kept + at / 2, x + at) << (16 * i);
    }
    places[word] = both;
}

template <typename T>
static cudaError_t prune_launch(void *kept, uint32_t *places, const void *x, int64_t m, int64_t k,
                                cudaStream_t stream)
{
    int64_t words = m * k / 32;
    int64_t blocks = (words + element_threads - 1) / element_threads;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    prune<T><<<(unsigned)blocks, element_threads, 0, stream>>>((T *)kept, places, (const T *)x, k,
                                                               words);
    return cudaGetLastError();
}

cudaError_t kernel_matmul_prune(enum precision precision, void *kept, uint32_t *places,
                                const void *x, int64_t m, int64_t k, cudaStream_t stream)
{
    if (m % MATMUL_TILED_LINES || k % MATMUL_TILED_DEPTH)
        return cudaErrorInvalidValue;
    switch (precision) {
    case PRECISION_FP16:
        return prune_launch<__half>(kept, places, x, m, k, stream);
    case PRECISION_BF16:
        return prune_launch<__nv_bfloat16>(kept, places, x, m, k, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
