/* A forward convolution in NHWC as a matrix product whose first factor is never laid out in memory
 * ("implicit GEMM"):
 *
 *     y [pixels][filters] = patches [pixels][depth] times w [filters][depth], transposed
 *
 * A patch is what a filter sees of x for one output pixel; its depth is taps times channels. A
 * block of threads makes a tile of y, m pixels by n filters. It goes along the depth in slices of
 * 64, of which some are on their way into shared memory while one is multiplied. Kernels differ in
 * the instructions that multiply. Here is how slices come in, and how the tile goes out.
 *
 * A slice has rows of 128 bytes, the 16-byte pieces of each permuted by the row's number, so that
 * eight rows of one column fall on all banks: what wgmma.cuh calls SWIZZLED. */
#pragma once

#include <limits.h>

#include "activation.cuh"
#include "element.cuh"
#include "image.cuh"
#include "kernels.h"

static const int slice_depth = 64, slice_row = 128 /* byte */, row_pieces = 8;

/* struct conv2d in what the device counts in. channels and filters: of a group. */
struct patched {
    int height, width, channels, filters, all_channels, all_filters, kernel_width;
    int stride, pad_height, pad_width, dilation, out_height, out_width;
    int pixels, depth, filter_tiles; /* of y; of a patch; of a group */
};

static inline patched patched_of(const struct conv2d *s, int tile_filters)
{
    patched g;
    g.height = (int)s->height;
    g.width = (int)s->width;
    g.channels = (int)(s->channels / s->groups);
    g.filters = (int)(s->filters / s->groups);
    g.all_channels = (int)s->channels;
    g.all_filters = (int)s->filters;
    g.kernel_width = (int)s->kernel_width;
    g.stride = (int)s->stride;
    g.pad_height = (int)s->pad_height;
    g.pad_width = (int)s->pad_width;
    g.dilation = (int)s->dilation;
    g.out_height = (int)s->out_height;
    g.out_width = (int)s->out_width;
    g.pixels = (int)(s->batch * s->out_height * s->out_width);
    g.depth = (int)(s->kernel_height * s->kernel_width) * g.channels;
    g.filter_tiles = (g.filters + tile_filters - 1) / tile_filters;
    return g;
}

/* Blocks: the tiles of y, of which each group has its own. */
static inline unsigned tile_count(const patched &g, int tile_pixels)
{
    int64_t columns = (int64_t)(g.all_filters / g.filters) * g.filter_tiles;
    return (unsigned)((g.pixels + tile_pixels - 1) / tile_pixels * columns);
}

/* Which tile of y is this block's: its first pixel, its group, its first filter in that. Blocks
 * that need the same pixels are neighbours. */
struct tile_place {
    int pixel, group, filter;
};

template <int m, int n> __device__ static inline tile_place tile_of_block(const patched &g)
{
    int tiles = g.all_filters / g.filters * g.filter_tiles;
    int column = (int)(blockIdx.x % tiles);
    return {(int)(blockIdx.x / tiles) * m, column / g.filter_tiles, column % g.filter_tiles * n};
}

/* 16 bytes to shared memory, zeros if they are not there. They are waited for in groups. */
__device__ static inline void copy_piece(uint32_t to, const void *from, bool there)
{
    FROM_800(asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
                          "l"(from), "r"(there ? 16 : 0)
                          : "memory");)
}

__device__ static inline void copy_group_end()
{
    FROM_800(asm volatile("cp.async.commit_group;" ::: "memory");)
}

/* All groups but the last `pending` have arrived, of this thread's. */
template <int pending> __device__ static inline void copy_group_wait()
{
    FROM_800(asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");)
}

/* What one thread copies of each slice: the same piece of every `apart`th row. */
template <typename T, int m, int n, int threads> struct slices {
    static const int apart = threads / row_pieces;
    static const int bytes = (m + n) * slice_row; /* patches, then w */
    static_assert(m % apart == 0 && n % apart == 0 && apart % row_pieces == 0, "whole rounds");

    const T *x[m / apart]; /* for each row the patch's first pixel, which may lie in the padding */
    int top[m / apart], left[m / apart]; /* where that is in its image */
    const T *w;                          /* the thread's piece of its first row */
    int filters;                         /* rows of w from that one to the group's end */
    int deep, channel, down, right; /* of the piece: its depth, its channel, its tap in pixels */
    uint32_t to;                    /* in a slice */

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
        top[i] = line % g.out_height * g.stride - g.pad_height;
        left[i] = pixel % g.out_width * g.stride - g.pad_width;
        int64_t first = ((int64_t)number * g.height + top[i]) * g.width + left[i];
        x[i] = image + first * g.all_channels;
        if (pixel >= g.pixels)
            top[i] = INT_MIN / 2; /* no tap of it is in an image */
    }

    /* A piece beyond a tap's channels is of the next tap. */
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

/* The tile lies in shared memory as fp32, in rows of n + tile_gap, and goes to y with all that is
 * left to do for each element. */
static const int tile_gap = 8;

template <typename T, int m, int n, int threads>
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
