#include "kernels.h"

#include <limits.h>

#include "strips.cuh"

/* The gradient of an average: each pixel gets the same share of each window that reaches it. */

static const int rows = 8; /* of a strip */

/* ---- small squares: what a row of windows gives to a line, added to all lines that it covers ---- */

template <typename T, int lanes, int side, int stride>
__global__ void __launch_bounds__(strip_threads) average_strips(T *dx, const T *dy, strips s)
{
    typedef words<T, lanes> pixel;
    const int wide = stride; /* pixels of a line */
    typedef strip_reach<side, stride, wide> reach;
    const typename computed<T>::type share = (typename computed<T>::type)1 / (side * side);
    const strip mine = strip_of(s);
    if (mine.image >= s.images)
        return;
    const int across = (int)s.across, column = mine.place * wide - s.pad_width;
    const int first = mine.place * (wide / stride) - reach::before; /* of the windows */
    const pixel *from =
        (const pixel *)dy + (int64_t)mine.image * s.out_height * s.out_width * across + mine.at;
    pixel *to = (pixel *)dx + (int64_t)mine.image * s.in_height * s.in_width * across + mine.at;
    sums<T, lanes> line[reach::lines][wide];
#pragma unroll
    for (int i = 0; i < reach::lines * wide; ++i)
        line[i / wide][i % wide].clear();
    const int begin = mine.chunk * s.rows, end = begin + s.rows;
#pragma unroll 1
    for (int row = begin - reach::before; row < end; ++row) {
        pixel v[reach::windows], result[wide];
        sums<T, lanes> given[reach::windows];
        line_load<reach::windows>(v, from, across, s.out_height, s.out_width, row, first,
                                  words_filled<T, lanes>(0));
#pragma unroll
        for (int w = 0; w < reach::windows; ++w)
            given[w].set(v[w]);
#pragma unroll
        for (int i = 0; i < wide; ++i) {
            sums<T, lanes> all;
            all.clear();
#pragma unroll
            for (int w = 0; w < reach::windows; ++w)
                if (reach::has(i, w))
                    all.add(given[w]);
#pragma unroll
            for (int j = 0; j < side; ++j)
                line[j][i].add(all);
        }
#pragma unroll
        for (int j = 0; j < stride; ++j) {
#pragma unroll
            for (int i = 0; i < wide; ++i)
                result[i] = line[j][i].times(share);
            if (row >= begin)
                line_store<wide>(to, result, across, s.in_height, s.in_width,
                                 row * stride - s.pad_height + j, column);
        }
#pragma unroll
        for (int i = 0; i < wide; ++i)
#pragma unroll
            for (int j = 0; j < reach::lines; ++j)
                if (j < reach::kept)
                    line[j][i] = line[j + stride][i];
                else
                    line[j][i].clear();
    }
}

/* ---- other windows: pixel by pixel ---- */

template <typename T, int lanes>
__device__ static inline void add(typename computed<T>::type *sums, const piece<T, lanes> &dy)
{
#pragma unroll
    for (int i = 0; i < lanes; ++i)
        sums[i] += to_computed(dy.at[i]);
}

template <typename T, int lanes>
__global__ void __launch_bounds__(tile_threads, 3)
    average_tiles(T *dx, const T *dy, images s, tile t)
{
    typedef typename computed<T>::type C;
    const C share = (C)1 / (C)(s.window_height * s.window_width);
    const tile_place place = tile_place_of(s, t);
    int column = place.column + (int)(threadIdx.x / t.across % t.columns);
    int row = place.row + (int)(threadIdx.x / (t.across * t.columns));
    const piece<T, lanes> *from = (const piece<T, lanes> *)dy +
                                  place.image * s.out_height * s.out_width * s.across + place.at;
    piece<T, lanes> *to =
        (piece<T, lanes> *)dx + place.image * s.in_height * s.in_width * s.across + place.at;
    if (place.at >= s.across || column >= s.in_width)
        return;
    reach beside = reach_of(column, column + 1, s.out_width, s.window_width, s.stride, s.pad_width);
    for (int turn = 0; turn < tile_turns && row < s.in_height; ++turn, row += (int)t.rows) {
        reach above = reach_of(row, row + 1, s.out_height, s.window_height, s.stride, s.pad_height);
        C sums[lanes] = {};
        for (int h = above.first; h <= above.last; ++h)
#pragma unroll 3
            for (int w = beside.first; w <= beside.last; ++w)
                add<T, lanes>(sums, from[((int64_t)h * s.out_width + w) * s.across]);
        piece<T, lanes> result;
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            result.at[i] = to_stored<T>(sums[i] * share);
        to[((int64_t)row * s.in_width + column) * s.across] = result;
    }
}

/* ---- launches ---- */

template <typename T, int lanes>
static cudaError_t launch_tiles(const struct pool *p, T *dx, const T *dy, cudaStream_t stream)
{
    const tile &t = images_tile(p);
    const images s = images_make(p, lanes, t, p->height, p->width);
    if (images_blocks(s) > INT_MAX)
        return cudaErrorInvalidValue;
    average_tiles<T, lanes><<<(unsigned)images_blocks(s), tile_threads, 0, stream>>>(dx, dy, s, t);
    return cudaGetLastError();
}

template <typename T, int lanes>
static cudaError_t launch_lanes(const struct pool *p, T *dx, const T *dy, cudaStream_t stream)
{
    typedef void kernel(T *, const T *, strips);
    static kernel *const kernels[2][2] = {
        {average_strips<T, lanes, 2, 1>, average_strips<T, lanes, 2, 2>},
        {average_strips<T, lanes, 3, 1>, average_strips<T, lanes, 3, 2>}};
    const strips s = strips_backward(p, lanes, (int)p->stride, rows);
    if (!strips_have(p) || !strips_fit(s))
        return launch_tiles<T, lanes>(p, dx, dy, stream);
    kernels[p->window_height - 2]
           [p->stride - 1]<<<(unsigned)strips_blocks(s), strip_threads, 0, stream>>>(dx, dy, s);
    return cudaGetLastError();
}

template <typename T>
static cudaError_t launch(const struct pool *p, void *dx, const void *dy, cudaStream_t stream)
{
    const int whole = 16 / (int)sizeof(T);
    auto *function = images_in_pieces(p, whole) ? launch_lanes<T, whole> : launch_lanes<T, 1>;
    return function(p, (T *)dx, (const T *)dy, stream);
}

cudaError_t kernel_pool_gradient(const struct pool *s, void *dx, const void *x, const void *dy,
                                 cudaStream_t stream)
{
    if (s->operation == POOL_MAX)
        return pool_max_gradient(s, dx, x, dy, stream);
    switch (s->precision) {
    case PRECISION_FP64:
        return launch<double>(s, dx, dy, stream);
    case PRECISION_FP32:
        return launch<float>(s, dx, dy, stream);
    case PRECISION_FP16:
        return launch<__half>(s, dx, dy, stream);
    case PRECISION_BF16:
        return launch<__nv_bfloat16>(s, dx, dy, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
