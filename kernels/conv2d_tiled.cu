/* A forward convolution in NHWC on tensor units, as a matrix product whose first factor is never
 * stored ("implicit GEMM"):
 *
 *     y [pixels][filters] = patches [pixels][depth] times w [filters][depth], transposed
 *
 * A patch is the part of x that a filter multiplies for one output pixel. Its depth is the number
 * of taps times the number of channels. A block of threads computes a tile of y, m pixels by n
 * filters, with matrix instructions m16n8k16 of its four warps. The block takes the depth in slices
 * of 64. While it multiplies one slice, it copies the next slices to shared memory.
 *
 * A slice has rows of 128 bytes. The 16-byte pieces of a row are permuted by the row's number, so
 * that eight rows of one column fall on all banks. */
#include <limits.h>

#include "activation.cuh"
#include "kernels.h"
#include "mma.cuh"

static const int threads = 128, slots = 3; /* slots: number of slices in shared memory */
static const int slice_depth = 64, slice_row = 128 /* byte */, row_pieces = 8;
static const int apart = threads / row_pieces; /* a thread copies every `apart`th row */
static const int tile_gap = 8; /* floats after each row of the result in shared memory */

/* m, n: pixels and filters of a block's tile. warp_m, warp_n: pixels and filters of a warp's part
 * of the tile. resident: number of blocks on a multiprocessor. */
struct tile_128x128x64 {
    static const int m = 128, n = 128, warp_m = 64, warp_n = 64, resident = 2;
};
struct tile_128x64x64 {
    static const int m = 128, n = 64, warp_m = 64, warp_n = 32, resident = 3;
};
struct tile_64x64x64 {
    static const int m = 64, n = 64, warp_m = 32, warp_n = 32, resident = 4;
};

/* struct conv2d with int members, for the kernels. channels and filters: numbers in one group. */
struct patched {
    int height, width, channels, filters, all_channels, all_filters, kernel_width;
    int stride_height, stride_width, pad_height, pad_width, dilation;
    int out_height, out_width;
    int pixels, depth, filter_tiles; /* pixels of y, depth of a patch, tiles of a group's filters */
};

/* clang-format off */
static patched patched_of(const struct conv2d *s, int tile_filters)
{
    const int channels = (int)(s->channels / s->groups), filters = (int)(s->filters / s->groups);
    return {(int)s->height, (int)s->width, channels, filters, (int)s->channels, (int)s->filters,
            (int)s->kernel_width, (int)s->stride_height, (int)s->stride_width,
            (int)s->pad_height, (int)s->pad_width, (int)s->dilation_width,
            (int)s->out_height, (int)s->out_width,
            (int)(s->batch * s->out_height * s->out_width),
            (int)(s->kernel_height * s->kernel_width) * channels,
            (filters + tile_filters - 1) / tile_filters};
}
/* clang-format on */

/* Position of a block's tile of y: first pixel, group, first filter in the group. */
struct tile_place {
    int pixel, group, filter;
};

/* ---- instructions ---- */

/* Begins a copy of 16 bytes to shared memory; if not `inside`, the 16 bytes are zeros. */
__device__ static inline void copy_piece(uint32_t to, const void *from, bool inside)
{
    FROM_800(asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
                          "l"(from), "r"(inside ? 16 : 0)
                          : "memory");)
}

__device__ static inline void copy_group_end()
{
    FROM_800(asm volatile("cp.async.commit_group;" ::: "memory");)
}

/* ---- copies of slices to shared memory ---- */

/* The part of each slice that one thread copies: the same piece of every `apart`th row. A slice has
 * the rows of the patches, then the rows of w. */
template <typename T, typename tile> struct slices {
    static const int m = tile::m, n = tile::n, bytes = (m + n) * slice_row;
    static_assert(m % apart == 0 && n % apart == 0 && apart % row_pieces == 0, "whole rounds");

    const T *x[m / apart]; /* first pixel of each row's patch; it may lie in the padding */
    int top[m / apart], left[m / apart]; /* row and column of the patch's first pixel */
    const T *w;                          /* the thread's piece of its first row of w */
    int filters;       /* number of rows of w from the thread's first to the group's last */
    int deep, channel; /* depth and channel of the piece */
    int down, right;   /* pixels from the patch's first pixel to the piece's tap */
    uint32_t to;       /* the piece's offset in a slice, byte */

    __device__ slices(const T *all_x, const T *all_w, const patched &g, const tile_place &place)
    {
        int first = threadIdx.x / row_pieces, piece = threadIdx.x % row_pieces;
        to = first * slice_row + (piece ^ first % row_pieces) * 16;
        filters = g.filters - place.filter - first;
        deep = channel = piece * 8;
        down = right = 0;
        w = all_w + (int64_t)(place.group * g.filters + place.filter + first) * g.depth + deep;
#pragma unroll
        for (int i = 0; i < m / apart; ++i)
            patch(i, all_x + place.group * g.channels, place.pixel + first + i * apart, g);
        settle(g);
    }

    __device__ void patch(int i, const T *image, int pixel, const patched &g)
    {
        int line = pixel / g.out_width, number = line / g.out_height;
        top[i] = line % g.out_height * g.stride_height - g.pad_height;
        left[i] = pixel % g.out_width * g.stride_width - g.pad_width;
        int64_t first = ((int64_t)number * g.height + top[i]) * g.width + left[i];
        x[i] = image + first * g.all_channels;
        if (pixel >= g.pixels)
            top[i] = INT_MIN / 2; /* places all taps outside the image */
    }

    /* If the piece's channel is past the last one, moves the piece to the next tap. */
    __device__ void settle(const patched &g)
    {
        while (channel >= g.channels) {
            channel -= g.channels;
            right += g.dilation;
            if (right == g.kernel_width * g.dilation) {
                right = 0;
                down += g.dilation;
            }
        }
    }

    __device__ void load(uint32_t slice, const patched &g)
    {
        int64_t tap = ((int64_t)down * g.width + right) * g.all_channels + channel;
        bool inside = deep < g.depth;
#pragma unroll
        for (int i = 0; i < m / apart; ++i)
            copy_piece(slice + to + i * apart * slice_row, x[i] + tap,
                       inside && (unsigned)(top[i] + down) < (unsigned)g.height &&
                           (unsigned)(left[i] + right) < (unsigned)g.width);
#pragma unroll
        for (int i = 0; i < n / apart; ++i)
            copy_piece(slice + to + (m + i * apart) * slice_row, w + (int64_t)i * apart * g.depth,
                       inside && i * apart < filters);
        w += slice_depth;
        deep += slice_depth;
        channel += slice_depth;
        settle(g);
    }
};

/* ---- a warp's part of the tile ---- */

/* The sums are in fragments of 16 x 8. A lane has two neighbouring sums in row lane / 4, and two in
 * row lane / 4 + 8. */
template <typename T, typename tile> struct warp_part {
    static const int rows = tile::warp_m / 16, columns = tile::warp_n / 8;
    float sums[rows][columns][4];
    int lane, row, column; /* row, column: first ones of this part in the tile */

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

    /* matrices_load takes four 8 x 8 matrices: of A column by column (the second lies below the
     * first), of B row by row (the second lies beside the first). */
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
                    multiply(T(), sums[i][j], a[i], b[j]);
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

/* ---- the store of the tile ---- */

/* Stores the tile to y. In shared memory the tile has rows of n + tile_gap floats. If `finish`,
 * adds the bias and applies the activation. */
template <typename T, int m, int n>
__device__ static inline void tile_store(T *y, const float *tile, const T *b, const patched &g,
                                         const tile_place &place, bool finish,
                                         enum activation activation)
{
    int filter = place.group * g.filters + place.filter, filters = g.filters - place.filter;
#pragma unroll 2
    for (int i = threadIdx.x; i < m * n / 8; i += threads) {
        int row = i / (n / 8), column = i % (n / 8) * 8;
        if (place.pixel + row >= g.pixels || column >= filters)
            continue;
        const float4 *from = (const float4 *)(tile + row * (n + tile_gap) + column);
        const float4 low = from[0], high = from[1];
        float z[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        if (finish)
#pragma unroll
            for (int j = 0; j < 8; ++j)
                if (column + j < filters)
                    z[j] = activated(activation,
                                     b ? z[j] + to_computed(b[filter + column + j]) : z[j]);
        pack<T> eight;
#pragma unroll
        for (int j = 0; j < 8; ++j)
            eight.at[j] = to_stored<T>(z[j]);
        T *to = y + (int64_t)(place.pixel + row) * g.all_filters + filter + column;
        if (column + 8 <= filters && (uintptr_t)to % 16 == 0)
            *(pack<T> *)to = eight;
        else
#pragma unroll
            for (int j = 0; j < 8; ++j)
                if (column + j < filters)
                    to[j] = eight.at[j];
    }
}

/* ---- the kernel ---- */

template <typename tile, typename T>
__global__ void __launch_bounds__(threads, tile::resident)
    conv2d_tiled(T *y, const T *x, const T *w, const T *b, patched g, bool finish,
                 enum activation activation)
{
    typedef slices<T, tile> all_slices;
    extern __shared__ __align__(1024) unsigned char shared[];
    uint32_t base = (uint32_t)__cvta_generic_to_shared(shared);
    /* Blocks that need the same pixels have neighbouring numbers. */
    const int tiles = g.all_filters / g.filters * g.filter_tiles, index = (int)(blockIdx.x % tiles);
    const tile_place place = {(int)(blockIdx.x / tiles) * tile::m, index / g.filter_tiles,
                              index % g.filter_tiles * tile::n};
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
        /* Waits until all of this thread's groups but the last have arrived. */
        FROM_800(asm volatile("cp.async.wait_group %0;" ::"n"(slots - 2) : "memory");)
        __syncthreads(); /* all threads see slice i, and none still reads the slot filled next */
        if (i + slots - 1 < count)
            coming.load(base + (slot == 0 ? slots - 1 : slot - 1) * all_slices::bytes, g);
        copy_group_end();
        part.add(base + slot * all_slices::bytes);
        slot = slot == slots - 1 ? 0 : slot + 1;
    }
    __syncthreads();
    part.put((float *)shared);
    __syncthreads();
    tile_store<T, tile::m, tile::n>(y, (const float *)shared, b, g, place, finish, activation);
}

/* ---- launchers ---- */

template <typename tile, typename T>
static cudaError_t launch(const struct conv2d *s, const struct conv2d_arrays *m,
                          cudaStream_t stream)
{
    const int ring = slots * slices<T, tile>::bytes;
    const int out = tile::m * (tile::n + tile_gap) * (int)sizeof(float);
    const int bytes = ring > out ? ring : out;
    cudaError_t code = image_check((const void *)conv2d_tiled<tile, T>, 80);
    if (code == cudaSuccess)
        code = cudaFuncSetAttribute(conv2d_tiled<tile, T>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (code != cudaSuccess)
        return code;
    const patched g = patched_of(s, tile::n);
    const int64_t columns = (int64_t)(g.all_filters / g.filters) * g.filter_tiles;
    const unsigned blocks = (unsigned)((g.pixels + tile::m - 1) / tile::m * columns);
    conv2d_tiled<tile, T><<<blocks, threads, bytes, stream>>>(
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

const struct conv2d_tile conv2d_tiles[CONV2D_TILES] = {
    {"mma 128x128x64", by_precision<tile_128x128x64>},
    {"mma 128x64x64", by_precision<tile_128x64x64>},
    {"mma 64x64x64", by_precision<tile_64x64x64>},
};
