#include "kernels.h"

#include <limits.h>

#include "strips.cuh"

/* The gradient of an average: each pixel gets the same share of each window that reaches it. */

/* ---- small squares: what windows give to the pixels of a line, then what their rows give to lines ---- */

template <int stride> constexpr int strip_rows = stride == 1 ? 3 : 2; /* of a thread */

/* A thread has `stride` pixels beside each other of some lines. The windows that reach these are in flight
 * together. */
template <typename T, int lanes, int side, int stride>
__global__ void __launch_bounds__(strip_threads, 5) average_strips(T *dx, const T *dy, strips s)
{
    typedef words<T, lanes> pixel;
    typedef strip_reach<side, stride> reach;
    const int rows = strip_rows<stride> + reach::before, columns = 1 + reach::before;
    const typename computed<T>::type share = (typename computed<T>::type)1 / (side * side);
    const strip mine = strip_of(s);
    if (mine.image >= s.images)
        return;
    const int across = (int)s.across, row = mine.chunk * strip_rows<stride>;
    const pixel *from =
        (const pixel *)dy + (int64_t)mine.image * s.out_height * s.out_width * across + mine.at;
    pixel *to = (pixel *)dx + (int64_t)mine.image * s.in_height * s.in_width * across + mine.at;
    pixel v[rows][columns];
#pragma unroll
    for (int h = 0; h < rows; ++h)
        line_load<columns>(v[h], from, across, s.out_height, s.out_width, row + h - reach::before,
                           mine.place - reach::before, words_filled<T, lanes>(0));
    sums<T, lanes> given[rows][stride];
#pragma unroll
    for (int h = 0; h < rows; ++h)
#pragma unroll
        for (int i = 0; i < stride; ++i) {
            given[h][i].clear();
#pragma unroll
            for (int w = 0; w < columns; ++w)
                if (reach::has(i, w)) {
                    sums<T, lanes> one;
                    one.set(v[h][w]);
                    given[h][i].add(one);
                }
        }
#pragma unroll
    for (int j = 0; j < strip_rows<stride> * stride; ++j) {
        pixel result[stride];
#pragma unroll
        for (int i = 0; i < stride; ++i) {
            sums<T, lanes> all;
            all.clear();
#pragma unroll
            for (int h = 0; h < rows; ++h)
                if (reach::has(j, h))
                    all.add(given[h][i]);
            result[i] = all.times(share);
        }
        line_store<stride>(to, result, across, s.in_height, s.in_width,
                           row * stride - s.pad_height + j, mine.place * stride - s.pad_width);
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
    const strips s = strips_backward(p, lanes, p->stride == 1 ? strip_rows<1> : strip_rows<2>);
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
