#include "kernels.h"

#include <limits.h>

#include "images.cuh"

/* What a window is reduced to, `lanes` values beside each other. */
template <typename T, int lanes> struct largest {
    piece<T, lanes> v;

    static __device__ piece<T, lanes> padding()
    {
        piece<T, lanes> x;
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            x.at[i] = to_stored<T>(-INFINITY);
        return x;
    }
    __device__ explicit largest(const piece<T, lanes> &x) : v(x)
    {
    }
    static __device__ double greater(double a, double b)
    {
        return a > b ? a : b;
    }
    static __device__ float greater(float a, float b)
    {
        return fmaxf(a, b);
    }
    static __device__ __half2 greater(__half2 a, __half2 b)
    {
        return __hmax2(a, b);
    }
    static __device__ __nv_bfloat162 greater(__nv_bfloat162 a, __nv_bfloat162 b)
    {
        return __hmax2(a, b);
    }
    static __device__ __half greater(__half a, __half b)
    {
        return __hmax(a, b);
    }
    static __device__ __nv_bfloat16 greater(__nv_bfloat16 a, __nv_bfloat16 b)
    {
        return __hmax(a, b);
    }
    /* Of 16 bits two at a time: one instruction. */
    template <typename W> __device__ void add_as(const piece<T, lanes> &x)
    {
        W *mine = (W *)v.at;
        const W *other = (const W *)x.at;
#pragma unroll
        for (int i = 0; i < lanes * (int)sizeof(T) / (int)sizeof(W); ++i)
            mine[i] = greater(mine[i], other[i]);
    }
    __device__ void add(const piece<T, lanes> &x);
    template <typename C> __device__ piece<T, lanes> result(C) const
    {
        return v;
    }
};
template <> __device__ inline void largest<double, 2>::add(const piece<double, 2> &x)
{
    add_as<double>(x);
}
template <> __device__ inline void largest<float, 4>::add(const piece<float, 4> &x)
{
    add_as<float>(x);
}
template <> __device__ inline void largest<__half, 8>::add(const piece<__half, 8> &x)
{
    add_as<__half2>(x);
}
template <> __device__ inline void largest<__nv_bfloat16, 8>::add(const piece<__nv_bfloat16, 8> &x)
{
    add_as<__nv_bfloat162>(x);
}
template <typename T, int lanes>
__device__ inline void largest<T, lanes>::add(const piece<T, lanes> &x)
{
    add_as<T>(x);
}

template <typename T, int lanes> struct average {
    typedef typename computed<T>::type C;
    C sum[lanes];

    static __device__ piece<T, lanes> padding()
    {
        piece<T, lanes> x;
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            x.at[i] = to_stored<T>(0);
        return x;
    }
    __device__ explicit average(const piece<T, lanes> &x)
    {
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            sum[i] = to_computed(x.at[i]);
    }
    __device__ void add(const piece<T, lanes> &x)
    {
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            sum[i] += to_computed(x.at[i]);
    }
    __device__ piece<T, lanes> result(C share) const
    {
        piece<T, lanes> y;
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            y.at[i] = to_stored<T>(sum[i] * share);
        return y;
    }
};

static const int turns = 2; /* rows that a thread makes one after the other */

/* One window, its first pixel at row `top` and column `left`. side: of a square; 0: any. */
template <typename R, typename T, int lanes, int side>
__device__ static inline R reduce(const piece<T, lanes> *image, const images &s, int top, int left)
{
    bool whole = top >= 0 && left >= 0 && top + s.window_height <= s.in_height &&
                 left + s.window_width <= s.in_width;
    if (side && whole) { /* all loads are in flight together */
        const int each = side ? side : 1;
        piece<T, lanes> x[each * each];
        image += ((int64_t)top * s.in_width + left) * s.across;
#pragma unroll
        for (int i = 0; i < each * each; ++i)
            x[i] = image[(i / each * s.in_width + i % each) * s.across];
        R reduced(x[0]);
#pragma unroll
        for (int i = 1; i < each * each; ++i)
            reduced.add(x[i]);
        return reduced;
    }
    R reduced(R::padding());
#pragma unroll 1
    for (int i = 0; i < s.window_height * s.window_width; ++i) {
        int h = top + i / s.window_width, w = left + i % s.window_width;
        if (h >= 0 && h < s.in_height && w >= 0 && w < s.in_width)
            reduced.add(image[((int64_t)h * s.in_width + w) * s.across]);
    }
    return reduced;
}

template <typename R, typename T, int lanes, int side>
__global__ void __launch_bounds__(tile_threads, 3) pool(T *y, const T *x, images s, tile t)
{
    typedef typename computed<T>::type C;
    const C share = (C)1 / (C)(s.window_height * s.window_width);
    const tile_place place = tile_place_of(s, t, turns);
    int64_t at = place.at, image = place.image;
    int column = place.column + (int)(threadIdx.x / t.across % t.columns);
    int row = place.row + (int)(threadIdx.x / (t.across * t.columns));
    const piece<T, lanes> *from =
        (const piece<T, lanes> *)x + image * s.in_height * s.in_width * s.across + at;
    piece<T, lanes> *to = (piece<T, lanes> *)y + image * s.out_height * s.out_width * s.across + at;
    if (at >= s.across || column >= s.out_width)
        return;
    int left = column * s.stride - s.pad_width;
    for (int turn = 0; turn < turns && row < s.out_height; ++turn, row += (int)t.rows)
        to[((int64_t)row * s.out_width + column) * s.across] =
            reduce<R, T, lanes, side>(from, s, row * s.stride - s.pad_height, left).result(share);
}

template <template <typename, int> class R, typename T, int lanes>
static cudaError_t launch_shape(void *y, const void *x, const images &s, const tile &t,
                                unsigned blocks, cudaStream_t stream)
{
    bool square = s.window_height == s.window_width;
    auto *kernel = square && s.window_height == 2   ? pool<R<T, lanes>, T, lanes, 2>
                   : square && s.window_height == 3 ? pool<R<T, lanes>, T, lanes, 3>
                                                    : pool<R<T, lanes>, T, lanes, 0>;
    kernel<<<blocks, tile_threads, 0, stream>>>((T *)y, (const T *)x, s, t);
    return cudaGetLastError();
}

template <template <typename, int> class R, typename T>
static cudaError_t launch(const struct pool *p, void *y, const void *x, cudaStream_t stream)
{
    const int whole = 16 / (int)sizeof(T);
    const bool pieces = images_in_pieces(p, whole);
    const tile &t = images_tile(p);
    const images s = images_make(p, pieces ? whole : 1, t, turns, p->out_height, p->out_width);
    double blocks = images_blocks(s);
    if (blocks > INT_MAX)
        return cudaErrorInvalidValue;
    return pieces ? launch_shape<R, T, whole>(y, x, s, t, (unsigned)blocks, stream)
                  : launch_shape<R, T, 1>(y, x, s, t, (unsigned)blocks, stream);
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
