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
    __device__ void join(const largest &other)
    {
        add(other.v);
    }
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
    __device__ void join(const average &other)
    {
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            sum[i] += other.sum[i];
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

/* ---- any window: pixel by pixel ---- */

static const int turns_any = 2; /* rows that a thread makes one after the other */

/* One window, its first pixel at row `top` and column `left`. */
template <typename R, typename T, int lanes>
__device__ static inline R reduce(const piece<T, lanes> *image, const images &s, int top, int left)
{
    R reduced(R::padding());
#pragma unroll 1
    for (int i = 0; i < s.window_height * s.window_width; ++i) {
        int h = top + i / s.window_width, w = left + i % s.window_width;
        if (h >= 0 && h < s.in_height && w >= 0 && w < s.in_width)
            reduced.add(image[((int64_t)h * s.in_width + w) * s.across]);
    }
    return reduced;
}

template <typename R, typename T, int lanes>
__global__ void __launch_bounds__(tile_threads, 3) pool_any(T *y, const T *x, images s, tile t)
{
    typedef typename computed<T>::type C;
    const C share = (C)1 / (C)(s.window_height * s.window_width);
    const tile_place place = tile_place_of(s, t, turns_any);
    int64_t at = place.at, image = place.image;
    int column = place.column + (int)(threadIdx.x / t.across % t.columns);
    int row = place.row + (int)(threadIdx.x / (t.across * t.columns));
    const piece<T, lanes> *from =
        (const piece<T, lanes> *)x + image * s.in_height * s.in_width * s.across + at;
    piece<T, lanes> *to = (piece<T, lanes> *)y + image * s.out_height * s.out_width * s.across + at;
    if (at >= s.across || column >= s.out_width)
        return;
    int left = column * s.stride - s.pad_width;
    for (int turn = 0; turn < turns_any && row < s.out_height; ++turn, row += (int)t.rows)
        to[((int64_t)row * s.out_width + column) * s.across] =
            reduce<R, T, lanes>(from, s, row * s.stride - s.pad_height, left).result(share);
}

/* ---- squares of 2 and 3 pixels: each thread goes down a column ---- */

/* Windows below each other share lines, which are loaded and reduced once: `step` apart, the stride, or the
 * side where they share none. So many windows that about 16 loads are in flight in each thread. */
template <int side, int step> struct strip {
    static const int turns = step == 1 || side == 2 ? 4 : 2, lines = (turns - 1) * step + side;

    static __device__ int offset(int line, int stride)
    {
        return step < side ? line : line / side * stride + line % side;
    }
};

template <typename R, typename T, int lanes, int side, int step>
__global__ void __launch_bounds__(tile_threads, 2)
    pool(T *__restrict__ y, const T *__restrict__ x, images s, tile t)
{
    typedef typename computed<T>::type C;
    typedef strip<side, step> strip;
    const tile_place place = tile_place_of(s, t, strip::turns);
    const int column = place.column + (int)(threadIdx.x / t.across % t.columns);
    const int row = place.row + (int)(threadIdx.x / (t.across * t.columns)) * strip::turns;
    const int top = row * s.stride - s.pad_height, left = column * s.stride - s.pad_width;
    const piece<T, lanes> *from =
        (const piece<T, lanes> *)x + place.image * s.in_height * s.in_width * s.across + place.at;
    piece<T, lanes> *to =
        (piece<T, lanes> *)y + place.image * s.out_height * s.out_width * s.across + place.at;
    if (place.at >= s.across || column >= s.out_width)
        return;
    piece<T, lanes> loaded[strip::lines][side];
#pragma unroll
    for (int i = 0; i < strip::lines; ++i)
#pragma unroll
        for (int j = 0; j < side; ++j) {
            const int h = top + strip::offset(i, s.stride), w = left + j;
            loaded[i][j] = h >= 0 && h < s.in_height && w >= 0 && w < s.in_width
                               ? from[((int64_t)h * s.in_width + w) * s.across]
                               : R::padding();
        }
    const auto line = [&](int i) {
        R reduced(loaded[i][0]);
#pragma unroll
        for (int k = 1; k < side; ++k)
            reduced.add(loaded[i][k]);
        return reduced;
    };
#pragma unroll
    for (int turn = 0; turn < strip::turns; ++turn) {
        R reduced = line(turn * step);
#pragma unroll
        for (int k = 1; k < side; ++k)
            reduced.join(line(turn * step + k));
        if (row + turn < s.out_height)
            to[((int64_t)(row + turn) * s.out_width + column) * s.across] =
                reduced.result((C)1 / (C)(side * side));
    }
}

/* ---- launches ---- */

template <template <typename, int> class R, typename T, int lanes, int side, int step>
static cudaError_t launch_strip(const struct pool *p, void *y, const void *x, cudaStream_t stream)
{
    const tile &t = images_tile(p);
    const images s =
        images_make(p, lanes, t, strip<side, step>::turns, p->out_height, p->out_width);
    if (images_blocks(s) > INT_MAX)
        return cudaErrorInvalidValue;
    pool<R<T, lanes>, T, lanes, side, step>
        <<<(unsigned)images_blocks(s), tile_threads, 0, stream>>>((T *)y, (const T *)x, s, t);
    return cudaGetLastError();
}

template <template <typename, int> class R, typename T, int lanes>
static cudaError_t launch_any(const struct pool *p, void *y, const void *x, cudaStream_t stream)
{
    const tile &t = images_tile(p);
    const images s = images_make(p, lanes, t, turns_any, p->out_height, p->out_width);
    if (images_blocks(s) > INT_MAX)
        return cudaErrorInvalidValue;
    pool_any<R<T, lanes>, T, lanes>
        <<<(unsigned)images_blocks(s), tile_threads, 0, stream>>>((T *)y, (const T *)x, s, t);
    return cudaGetLastError();
}

template <template <typename, int> class R, typename T, int lanes>
static cudaError_t launch_lanes(const struct pool *p, void *y, const void *x, cudaStream_t stream)
{
    typedef cudaError_t launcher(const struct pool *p, void *y, const void *x, cudaStream_t stream);
    /* By side and by stride, the last also of all longer ones. */
    static launcher *const launchers[4][3] = {
        {NULL, NULL, NULL},
        {NULL, NULL, NULL},
        {launch_strip<R, T, lanes, 2, 1>, launch_strip<R, T, lanes, 2, 2>,
         launch_strip<R, T, lanes, 2, 2>},
        {launch_strip<R, T, lanes, 3, 1>, launch_strip<R, T, lanes, 3, 2>,
         launch_strip<R, T, lanes, 3, 3>},
    };
    bool square = p->window_height == p->window_width && p->window_height < 4;
    launcher *found =
        square ? launchers[p->window_height][p->stride < 3 ? p->stride - 1 : 2] : NULL;
    return found ? found(p, y, x, stream) : launch_any<R, T, lanes>(p, y, x, stream);
}

template <template <typename, int> class R, typename T>
static cudaError_t launch(const struct pool *p, void *y, const void *x, cudaStream_t stream)
{
    const int whole = 16 / (int)sizeof(T);
    return images_in_pieces(p, whole) ? launch_lanes<R, T, whole>(p, y, x, stream)
                                      : launch_lanes<R, T, 1>(p, y, x, stream);
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
