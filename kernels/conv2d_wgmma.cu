#include "patches.cuh"
#include "wgmma.cuh"

/* A forward convolution by matrix instructions of a warpgroup, m64nNk16, which take both factors
 * from shared memory. How slices come in and how the tile leaves is in patches.cuh. While the
 * tensor cores are at a slice, the threads that sent them there copy a later one. */

/* The pixels and filters of a block's tile, slices in shared memory, blocks of a multiprocessor.
 * Each warpgroup has 64 of the pixels, and all filters. */
struct group_128x256x64 {
    static const int m = 128, n = 256, slots = 4, resident = 1;
};
struct group_128x128x64 {
    static const int m = 128, n = 128, slots = 3, resident = 2;
};
struct group_64x128x64 {
    static const int m = 64, n = 128, slots = 3, resident = 3;
};
struct group_128x64x64 {
    static const int m = 128, n = 64, slots = 3, resident = 3;
};
struct group_64x64x64 {
    static const int m = 64, n = 64, slots = 4, resident = 3;
};

#define MULTIPLY(T, type, n, sums, a, b)                                                           \
    __device__ static inline void multiply(const T *, float(&c)[sums], uint64_t of_a,              \
                                           uint64_t of_b)                                          \
    {                                                                                              \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type                        \
                     "." type WGMMA_NAMES_##sums "%" #a ", %" #b ", 1, 1, 1, 0, 0;"                \
                     : WGMMA_EACH_##sums("f")                                                      \
                     : "l"(of_a), "l"(of_b));                                                      \
    }
#define MULTIPLY_ALL(T, type)                                                                      \
    MULTIPLY(T, type, 64, 32, 32, 33)                                                              \
    MULTIPLY(T, type, 128, 64, 64, 65)                                                             \
    MULTIPLY(T, type, 256, 128, 128, 129)
MULTIPLY_ALL(__half, "f16")
MULTIPLY_ALL(__nv_bfloat16, "bf16")

/* A thread has two neighbours in row lane / 4 and two in row lane / 4 + 8 of each 16 x 8. */
template <int n> __device__ static inline void put(float *out, const float (&sums)[n / 2])
{
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < n / 8; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            *(float2 *)(out + (row + 8 * half) * (n + tile_gap) + j * 8 + lane % 4 * 2) =
                make_float2(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
}

template <typename tile, typename T>
__global__ void __launch_bounds__(2 * tile::m, tile::resident)
    conv2d_wgmma(T *y, const T *x, const T *w, const T *b, patched g, bool finish,
                 enum activation activation)
{
    const int threads = 2 * tile::m, slots = tile::slots;
    typedef slices<T, tile::m, tile::n, threads> all_slices;
    extern __shared__ __align__(1024) unsigned char shared[];
    uint32_t base = (uint32_t)__cvta_generic_to_shared(shared);
    const tile_place place = tile_of_block<tile::m, tile::n>(g);
    all_slices coming(x, w, g, place);
    /* Taken from one lane, so that the compiler knows that it is the same in all lanes. */
    int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    uint64_t of_a = wgmma_descriptor(shared + group * 64 * slice_row, SWIZZLED);
    uint64_t of_b = wgmma_descriptor(shared + tile::m * slice_row, SWIZZLED);
    float sums[tile::n / 2];
#pragma unroll
    for (int i = 0; i < tile::n / 2; ++i)
        sums[i] = 0.0f;
    int count = (g.depth + slice_depth - 1) / slice_depth;
    for (int i = 0; i < slots - 1; ++i) {
        if (i < count)
            coming.load(base + i * all_slices::bytes, g);
        copy_group_end();
    }
    int slot = 0, next = slots - 1;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
        copy_group_wait<slots - 2>();
        wgmma_wait();
        wgmma_publish(); /* all see slice i, and the next slot is free */
        uint64_t at = slot * (all_slices::bytes / 16);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < slice_depth / 16; ++step)
            multiply((const T *)NULL, sums, of_a + at + step * wgmma_advance(64, SWIZZLED),
                     of_b + at + step * wgmma_advance(tile::n, SWIZZLED));
        wgmma_commit();
        if (i + slots - 1 < count)
            coming.load(base + next * all_slices::bytes, g);
        copy_group_end();
        slot = slot == slots - 1 ? 0 : slot + 1;
        next = next == slots - 1 ? 0 : next + 1;
    }
    wgmma_wait();
#pragma unroll
    for (int i = 0; i < tile::n / 2; ++i)
        asm volatile("" : "+f"(sums[i])); /* not read before they are there */
    __syncthreads();
    put<tile::n>((float *)shared, sums);
    __syncthreads();
    tile_store<T, tile::m, tile::n, threads>(y, (const float *)shared, b, g, place, finish,
                                             activation);
}

template <typename tile, typename T>
static cudaError_t launch(const struct conv2d *s, const struct conv2d_arrays *m,
                          cudaStream_t stream)
{
    const int ring = tile::slots * slices<T, tile::m, tile::n, 2 * tile::m>::bytes;
    const int out = tile::m * (tile::n + tile_gap) * (int)sizeof(float);
    const int bytes = ring > out ? ring : out;
    cudaError_t code = cudaFuncSetAttribute(conv2d_wgmma<tile, T>,
                                            cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (code != cudaSuccess)
        return code;
    const patched g = patched_of(s, tile::n);
    conv2d_wgmma<tile, T><<<tile_count(g, tile::m), 2 * tile::m, bytes, stream>>>(
        (T *)m->y, (const T *)m->x, (const T *)m->w, (const T *)m->b, g, m->finish, s->activation);
    return cudaGetLastError();
}

template <typename tile>
static cudaError_t by_precision(const struct conv2d *s, const struct conv2d_arrays *arrays,
                                cudaStream_t stream)
{
    return s->precision == PRECISION_FP16 ? launch<tile, __half>(s, arrays, stream)
                                          : launch<tile, __nv_bfloat16>(s, arrays, stream);
}

#define ROW(name)                                                                                  \
    {                                                                                              \
        "wgmma " #name, 90, 90, by_precision<group_##name>                                         \
    }
const struct conv2d_tile conv2d_wgmma_tiles[] = {
    ROW(128x256x64), ROW(128x128x64), ROW(64x128x64),
    ROW(128x64x64),  ROW(64x64x64),   {NULL, 0, 0, NULL},
};
