#include "patches.cuh"

/* A forward convolution by the tensor units' matrix instructions of a warp, m16n8k16. How slices
 * come into shared memory and how the tile leaves it is in patches.cuh. */

static const int threads = 128, slots = 3; /* slices in shared memory */

/* The pixels and filters of a block's tile and of a warp's part of it; blocks of a multiprocessor.
 */
struct tile_128x128x64 {
    static const int m = 128, n = 128, warp_m = 64, warp_n = 64, resident = 2;
};
struct tile_128x64x64 {
    static const int m = 128, n = 64, warp_m = 64, warp_n = 32, resident = 3;
};
struct tile_64x64x64 {
    static const int m = 64, n = 64, warp_m = 32, warp_n = 32, resident = 4;
};

/* Four matrices of 8 x 8, each lane with the address of one row: of each the lane gets two
 * neighbours in row lane / 4. */
__device__ static inline void matrices_load(uint32_t *to, uint32_t from)
{
    FROM_800(asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                          : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                          : "r"(from)
                          : "memory");)
}

#define MULTIPLY(T, type)                                                                          \
    __device__ static inline void multiply(const T *, float *c, const uint32_t *a,                 \
                                           const uint32_t *b)                                      \
    {                                                                                              \
        FROM_800(                                                                                  \
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "            \
                         "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"         \
                         : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                          \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));)     \
    }
MULTIPLY(__half, "f16")
MULTIPLY(__nv_bfloat16, "bf16")

/* A warp's part of the tile: sums of 16 x 8, of which a lane has two neighbours in row lane / 4 and
 * two in row lane / 4 + 8. */
template <typename T, typename tile> struct warp_part {
    static const int rows = tile::warp_m / 16, columns = tile::warp_n / 8;
    float sums[rows][columns][4];
    int lane, row, column; /* the part's first, in the tile */

    __device__ warp_part()
    {
        const int warp = threadIdx.x / 32, across = tile::n / tile::warp_n;
        lane = threadIdx.x % 32;
        row = warp / across * tile::warp_m;
        column = warp % across * tile::warp_n;
#pragma unroll
        for (int i = 0; i < rows * columns * 4; ++i)
            sums[i / 4 / columns][i / 4 % columns][i % 4] = 0.0f;
    }

    /* Of the matrices of A the first two lie below each other, of those of B beside each other. */
    __device__ void add(uint32_t slice)
    {
        uint32_t a_from = slice + (row + lane % 16) * slice_row + (lane / 16 ^ lane % 8) * 16;
        uint32_t b_from = slice + (tile::m + column + lane / 16 * 8 + lane % 8) * slice_row +
                          (lane / 8 % 2 ^ lane % 8) * 16;
#pragma unroll
        for (int step = 0; step < slice_depth / 16; ++step) {
            uint32_t a[rows][4], b[columns][2];
#pragma unroll
            for (int i = 0; i < rows; ++i)
                matrices_load(a[i], (a_from ^ step * 32) + i * 16 * slice_row);
#pragma unroll
            for (int j = 0; j < columns; j += 2)
                matrices_load(b[j], (b_from ^ step * 32) + j * 8 * slice_row);
#pragma unroll
            for (int i = 0; i < rows; ++i)
#pragma unroll
                for (int j = 0; j < columns; ++j)
                    multiply((const T *)NULL, sums[i][j], a[i], b[j]);
        }
    }

    __device__ void put(float *out) const
    {
#pragma unroll
        for (int i = 0; i < rows; ++i)
#pragma unroll
            for (int j = 0; j < columns; ++j)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    int at = (row + i * 16 + half * 8 + lane / 4) * (tile::n + tile_gap) + column +
                             j * 8 + lane % 4 * 2;
                    *(float2 *)(out + at) =
                        make_float2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
                }
    }
};

template <typename tile, typename T>
__global__ void __launch_bounds__(threads, tile::resident)
    conv2d_tiled(T *y, const T *x, const T *w, const T *b, patched g, bool finish,
                 enum activation activation)
{
    typedef slices<T, tile::m, tile::n, threads> all_slices;
    extern __shared__ __align__(1024) unsigned char shared[];
    uint32_t base = (uint32_t)__cvta_generic_to_shared(shared);
    const tile_place place = tile_of_block<tile::m, tile::n>(g);
    all_slices coming(x, w, g, place);
    warp_part<T, tile> part;
    int count = (g.depth + slice_depth - 1) / slice_depth;
    for (int i = 0; i < slots - 1; ++i) {
        if (i < count)
            coming.load(base + i * all_slices::bytes, g);
        copy_group_end();
    }
    int slot = 0;
    for (int i = 0; i < count; ++i) {
        copy_group_wait<slots - 2>();
        __syncthreads(); /* all see slice i, and none still reads the slot that is filled next */
        if (i + slots - 1 < count)
            coming.load(base + (slot == 0 ? slots - 1 : slot - 1) * all_slices::bytes, g);
        copy_group_end();
        part.add(base + slot * all_slices::bytes);
        slot = slot == slots - 1 ? 0 : slot + 1;
    }
    __syncthreads();
    part.put((float *)shared);
    __syncthreads();
    tile_store<T, tile::m, tile::n, threads>(y, (const float *)shared, b, g, place, finish,
                                             activation);
}

template <typename tile, typename T>
static cudaError_t launch(const struct conv2d *s, const struct conv2d_arrays *m,
                          cudaStream_t stream)
{
    const int ring = slots * slices<T, tile::m, tile::n, threads>::bytes;
    const int out = tile::m * (tile::n + tile_gap) * (int)sizeof(float);
    const int bytes = ring > out ? ring : out;
    cudaError_t code = image_check((const void *)conv2d_tiled<tile, T>, 80);
    if (code == cudaSuccess)
        code = cudaFuncSetAttribute(conv2d_tiled<tile, T>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (code != cudaSuccess)
        return code;
    const patched g = patched_of(s, tile::n);
    conv2d_tiled<tile, T><<<tile_count(g, tile::m), threads, bytes, stream>>>(
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

#define ROW(m, n)                                                                                  \
    {                                                                                              \
        "mma " #m "x" #n "x64", 80, 999, by_precision<tile_##m##x##n##x64>                         \
    }
const struct conv2d_tile conv2d_tiles[] = {
    ROW(128, 128),
    ROW(128, 64),
    ROW(64, 64),
    {NULL, 0, 0, NULL},
};
