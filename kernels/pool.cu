#include "kernels.h"

#include <limits.h>

#include "strips.cuh"

/* What pixels are reduced to, `lanes` values beside each other. */
template <typename T, int lanes> struct largest {
    words<T, lanes> v;

    static __device__ words<T, lanes> padding()
    {
        return words_filled<T, lanes>(-INFINITY);
    }
    __device__ void set(const words<T, lanes> &x)
    {
        v = x;
    }
    __device__ void add(const largest &other)
    {
#pragma unroll
        for (int i = 0; i < v.count; ++i)
            v.at[i] = greater(v.at[i], other.v.at[i]);
    }
    template <typename C> __device__ words<T, lanes> result(C) const
    {
        return v;
    }
};

template <typename T, int lanes> struct average : sums<T, lanes> {
    static __device__ words<T, lanes> padding()
    {
        return words_filled<T, lanes>(0);
    }
    __device__ words<T, lanes> result(typename computed<T>::type share) const
    {
        return this->times(share);
    }
};

/* ---- small squares: each line's pixels are reduced once, and then the lines of each window ---- */

template <int stride> constexpr int strip_rows = stride == 1 ? 3 : 2; /* of a thread */

/* A thread has some windows below each other. All of their pixels are in flight together. */
template <template <typename, int> class R, typename T, int lanes, int side, int stride>
__global__ void __launch_bounds__(strip_threads, 6) pool_strips(T *y, const T *x, strips s)
{
    typedef words<T, lanes> pixel;
    typedef R<T, lanes> reduced;
    const int rows = strip_rows<stride>, lines = (rows - 1) * stride + side;
    const typename computed<T>::type share = (typename computed<T>::type)1 / (side * side);
    const strip mine = strip_of(s);
    if (mine.image >= s.images)
        return;
    const int across = (int)s.across, row = mine.chunk * rows;
    const pixel *image =
        (const pixel *)x + (int64_t)mine.image * s.in_height * s.in_width * across + mine.at;
    pixel *to = (pixel *)y + (int64_t)mine.image * s.out_height * s.out_width * across + mine.at;
    pixel v[lines][side];
#pragma unroll
    for (int i = 0; i < lines; ++i)
        line_load<side>(v[i], image, across, s.in_height, s.in_width,
                        row * stride - s.pad_height + i, mine.place * stride - s.pad_width,
                        reduced::padding());
    reduced line[lines];
#pragma unroll
    for (int i = 0; i < lines; ++i) {
        line[i].set(v[i][0]);
#pragma unroll
        for (int j = 1; j < side; ++j) {
            reduced one;
            one.set(v[i][j]);
            line[i].add(one);
        }
    }
#pragma unroll
    for (int i = 0; i < rows; ++i) {
        reduced all = line[i * stride];
#pragma unroll
        for (int j = 1; j < side; ++j)
            all.add(line[i * stride + j]);
        const pixel result = all.result(share);
        line_store<1>(to, &result, across, s.out_height, s.out_width, row + i, mine.place);
    }
}

/* ---- other windows: pixel by pixel ---- */

template <typename R, typename P>
__device__ static inline R reduce(const P *image, const images &s, int top, int left)
{
    R all;
    all.set(R::padding());
#pragma unroll 1
    for (int i = 0; i < s.window_height * s.window_width; ++i) {
        int h = top + i / s.window_width, w = left + i % s.window_width;
        if (h >= 0 && h < s.in_height && w >= 0 && w < s.in_width) {
            R one;
            one.set(image[((int64_t)h * s.in_width + w) * s.across]);
            all.add(one);
        }
    }
    return all;
}

template <typename R, typename T, int lanes>
__global__ void __launch_bounds__(tile_threads, 3) pool(T *y, const T *x, images s, tile t)
{
    typedef typename computed<T>::type C;
    const C share = (C)1 / (C)(s.window_height * s.window_width);
    const tile_place place = tile_place_of(s, t);
    int64_t at = place.at, image = place.image;
    int column = place.column + (int)(threadIdx.x / t.across % t.columns);
    int row = place.row + (int)(threadIdx.x / (t.across * t.columns));
    typedef words<T, lanes> pixel;
    const pixel *from = (const pixel *)x + image * s.in_height * s.in_width * s.across + at;
    pixel *to = (pixel *)y + image * s.out_height * s.out_width * s.across + at;
    if (at >= s.across || column >= s.out_width)
        return;
    int left = column * s.stride - s.pad_width;
    for (int turn = 0; turn < tile_turns && row < s.out_height; ++turn, row += (int)t.rows)
        to[((int64_t)row * s.out_width + column) * s.across] =
            reduce<R>(from, s, row * s.stride - s.pad_height, left).result(share);
}

/* ---- launches ---- */

template <template <typename, int> class R, typename T, int lanes>
static cudaError_t launch_tiles(const struct pool *p, T *y, const T *x, cudaStream_t stream)
{
    const tile &t = images_tile(p);
    const images s = images_make(p, lanes, t, p->out_height, p->out_width);
    if (images_blocks(s) > INT_MAX)
        return cudaErrorInvalidValue;
    pool<R<T, lanes>, T, lanes>
        <<<(unsigned)images_blocks(s), tile_threads, 0, stream>>>(y, x, s, t);
    return cudaGetLastError();
}

template <template <typename, int> class R, typename T, int lanes>
static cudaError_t launch_lanes(const struct pool *p, T *y, const T *x, cudaStream_t stream)
{
    typedef void kernel(T *, const T *, strips);
    static kernel *const kernels[2][2] = {
        {pool_strips<R, T, lanes, 2, 1>, pool_strips<R, T, lanes, 2, 2>},
        {pool_strips<R, T, lanes, 3, 1>, pool_strips<R, T, lanes, 3, 2>}};
    if (!strips_have(p))
        return launch_tiles<R, T, lanes>(p, y, x, stream);
    const strips s = strips_make(p, lanes, p->stride == 1 ? strip_rows<1> : strip_rows<2>,
                                 p->out_height, p->out_width);
    if (!strips_fit(s))
        return launch_tiles<R, T, lanes>(p, y, x, stream);
    kernels[p->window_height - 2]
           [p->stride - 1]<<<(unsigned)strips_blocks(s), strip_threads, 0, stream>>>(y, x, s);
    return cudaGetLastError();
}

template <template <typename, int> class R, typename T>
static cudaError_t launch(const struct pool *p, void *y, const void *x, cudaStream_t stream)
{
    const int whole = 16 / (int)sizeof(T);
    auto *function = images_in_pieces(p, whole) ? launch_lanes<R, T, whole> : launch_lanes<R, T, 1>;
    return function(p, (T *)y, (const T *)x, stream);
}

template <template <typename, int> class R>
static cudaError_t launch_precision(const struct pool *s, void *y, const void *x,
                                    cudaStream_t stream)
{
    switch (s->precision) {
    case PRECISION_FP64:
        return launch<R, double>(s, y, x, stream);
    case PRECISION_FP32:
        return launch<R, float>(s, y, x, stream);
    case PRECISION_FP16:
        return launch<R, __half>(s, y, x, stream);
    case PRECISION_BF16:
        return launch<R, __nv_bfloat16>(s, y, x, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t kernel_pool(const struct pool *s, void *y, const void *x, cudaStream_t stream)
{
    return s->operation == POOL_MAX ? launch_precision<largest>(s, y, x, stream)
                                    : launch_precision<average>(s, y, x, stream);
}
