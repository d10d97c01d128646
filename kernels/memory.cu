#include "kernels.h"

#include <limits.h>

#include "image.cuh"

/* A warp moves one chunk at a time: `loads` accesses of 16 bytes by each lane, all in flight
 * together. Four accesses cover the latency of HBM with few warps. One access is best for writes:
 * many short blocks then go through memory in order. Eight accesses are best for reads in L2. The
 * size of a chunk divides 4096 bytes, so arrays of a multiple of 4096 bytes have whole chunks. */
template <int loads> constexpr int chunk_bytes = loads * 32 * (int)sizeof(float4);

__device__ static inline float4 triad(float4 b, float4 c, float s)
{
    return make_float4(b.x + s * c.x, b.y + s * c.y, b.z + s * c.z, b.w + s * c.w);
}

__device__ static inline float total(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

/* Loads bypass L1, which would otherwise answer in place of L2. Each block has its own part of the
 * arrays, and each warp takes the same chunks in every pass. So no two multiprocessors request the
 * same line at the same time: L2 would see two such requests as one. */
template <enum memory_pattern pattern, int loads>
__global__ void move(float4 *a, const float4 *b, const float4 *c, int64_t chunks, int64_t part,
                     int repeat)
{
    const float s = 0.40625f;
    int64_t first = blockIdx.x * part + threadIdx.x / 32;
    int64_t last = min((blockIdx.x + 1) * part, chunks);
    float sum = 0.0f;
    for (int pass = 0; pass < repeat; ++pass)
#pragma unroll 1
        for (int64_t at = first; at < last; at += blockDim.x / 32) {
            int64_t lane = at * (loads * 32) + threadIdx.x % 32;
            float4 x[loads], y[loads];
#pragma unroll
            for (int i = 0; i < loads; ++i) {
                x[i] =
                    pattern == PATTERN_WRITE ? make_float4(s, s, s, s) : __ldcg(b + lane + i * 32);
                if (pattern == PATTERN_TRIAD)
                    y[i] = __ldcg(c + lane + i * 32);
            }
#pragma unroll
            for (int i = 0; i < loads; ++i) {
                if (pattern == PATTERN_READ)
                    sum += total(x[i]);
                else
                    a[lane + i * 32] = pattern == PATTERN_TRIAD ? triad(x[i], y[i], s) : x[i];
            }
        }
    /* Never true, because inputs lie in [-1, 1). The compiler must keep the loads. */
    if (pattern == PATTERN_READ && sum == 3.0e38f)
        a[0] = make_float4(sum, sum, sum, sum);
}

/* Atomic additions without a result: L2 does the addition, and the multiprocessor gets no answer.
 * An addition of 16 bytes is four additions of fp32, and needs compute capability 9.0. */
__device__ static inline void add_to(float *at, float s)
{
    asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(at), "f"(s) : "memory");
}
__device__ static inline void add_to(float4 *at, float s)
{
    FROM_900(
        asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(at), "f"(s)
                     : "memory");)
}

/* Takes chunks in the order of `move`. Each element belongs to one thread, so no addition waits for
 * another. */
template <typename word>
__global__ void add_in_cache(word *a, int64_t chunks, int64_t part, int repeat)
{
    const float s = 0.40625f;
    const int each = chunk_bytes<4> / (32 * (int)sizeof(word));
    int64_t first = blockIdx.x * part + threadIdx.x / 32;
    int64_t last = min((blockIdx.x + 1) * part, chunks);
    for (int pass = 0; pass < repeat; ++pass)
#pragma unroll 1
        for (int64_t at = first; at < last; at += blockDim.x / 32) {
            word *lane = a + at * (each * 32) + threadIdx.x % 32;
#pragma unroll
            for (int i = 0; i < each; ++i)
                add_to(lane + i * 32, s);
        }
}

/* The distribution of chunks among blocks (struct memory_kernel). */
struct walk {
    int64_t chunks, part; /* number of chunks in all, and of one block */
    dim3 grid;
    int repeat;
};

static cudaError_t walk_make(int64_t chunks, int repeat, int blocks, int threads, struct walk *walk)
{
    const int most_passes = 65535; /* CUDA's largest second dimension of a grid */
    int64_t warps = threads / 32;
    if (chunks < 1 || warps < 1)
        return cudaErrorInvalidValue;
    int64_t part = blocks > 0 ? (chunks + blocks - 1) / blocks : warps;
    int64_t grid = (chunks + part - 1) / part;
    int passes = blocks > 0 ? 1 : repeat; /* number of passes that have blocks of their own */
    if (grid > INT_MAX || passes > most_passes)
        return cudaErrorInvalidValue;
    *walk = {chunks, part, dim3((unsigned)grid, (unsigned)passes), blocks > 0 ? repeat : 1};
    return cudaSuccess;
}

template <typename word, int least>
static cudaError_t launch_add(void *a, const void *, const void *, size_t bytes, int repeat,
                              int blocks, int threads, cudaStream_t stream)
{
    struct walk walk;
    cudaError_t code = image_check((const void *)add_in_cache<word>, least);
    if (code == cudaSuccess)
        code = walk_make((int64_t)(bytes / chunk_bytes<4>), repeat, blocks, threads, &walk);
    if (code != cudaSuccess)
        return code;
    add_in_cache<<<walk.grid, threads, 0, stream>>>((word *)a, walk.chunks, walk.part, walk.repeat);
    return cudaGetLastError();
}

template <enum memory_pattern pattern, int loads>
static cudaError_t launch(void *a, const void *b, const void *c, size_t bytes, int repeat,
                          int blocks, int threads, cudaStream_t stream)
{
    struct walk walk;
    cudaError_t code =
        walk_make((int64_t)(bytes / chunk_bytes<loads>), repeat, blocks, threads, &walk);
    if (code != cudaSuccess)
        return code;
    move<pattern, loads><<<walk.grid, threads, 0, stream>>>(
        (float4 *)a, (const float4 *)b, (const float4 *)c, walk.chunks, walk.part, walk.repeat);
    return cudaGetLastError();
}

cudaError_t kernel_read(void *data, size_t bytes, cudaStream_t stream)
{
    const int threads = 256;
    return launch<PATTERN_READ, 4>(data, data, data, bytes, 1, 0, threads, stream);
}

#define ROW(pattern, what, arrays, moved, loads)                                                   \
    {                                                                                              \
        pattern, what, chunk_bytes<loads>, arrays, moved, launch<pattern, loads>                   \
    }
/* clang-format off */
/* Loads and stores with eviction hints, and bulk copies through shared memory, are no faster
 * (docs/measurements.md, "DRAM roofs"). */
const struct memory_kernel memory_kernels[] = {
    ROW(PATTERN_READ, "8 in flight", 1, 1, 8),
    ROW(PATTERN_READ, "4 in flight", 1, 1, 4),
    ROW(PATTERN_READ, "2 in flight", 1, 1, 2),
    ROW(PATTERN_READ, "1 in flight", 1, 1, 1),
    ROW(PATTERN_WRITE, "4 in flight", 1, 1, 4),
    ROW(PATTERN_WRITE, "1 in flight", 1, 1, 1),
    ROW(PATTERN_COPY, "4 in flight", 2, 2, 4),
    ROW(PATTERN_COPY, "1 in flight", 2, 2, 1),
    ROW(PATTERN_TRIAD, "4 in flight", 3, 3, 4),
    ROW(PATTERN_TRIAD, "1 in flight", 3, 3, 1),
    {PATTERN_ATOMIC, "4 bytes each", chunk_bytes<4>, 1, 1, launch_add<float, 70>},
    {PATTERN_ATOMIC, "16 bytes each", chunk_bytes<4>, 1, 1, launch_add<float4, 90>},
    {PATTERN_COUNT, NULL, 0, 0, 0, NULL},
};
/* clang-format on */
