#include "kernels.h"

#include "element.cuh"

/* Pools as one would first write them: a thread makes one element from the definition. */

/* An element of the image n, in channel c. */
struct place {
    int64_t n, c, h, w;
};

__device__ static inline place place_of(const struct pool &s, int64_t height, int64_t width,
                                        int64_t i)
{
    const int64_t image = height * width;
    const int64_t pixel = s.layout == LAYOUT_NHWC ? i / s.channels : i;
    const int64_t channel = s.layout == LAYOUT_NHWC ? i % s.channels : i / image % s.channels;
    return {i / (image * s.channels), channel, pixel / width % height, pixel % width};
}

__device__ static inline int64_t at(const struct pool &s, int64_t height, int64_t width,
                                    const place &p)
{
    return s.layout == LAYOUT_NHWC ? ((p.n * height + p.h) * width + p.w) * s.channels + p.c
                                   : ((p.n * s.channels + p.c) * height + p.h) * width + p.w;
}

/* What a window has of the input: rows and columns, the last ones not included. */
struct patch {
    int64_t top, bottom, left, right;
};

__device__ static inline patch window_of(const struct pool &s, int64_t h, int64_t w)
{
    const int64_t top = h * s.stride - s.pad_height, left = w * s.stride - s.pad_width;
    return {max(top, (int64_t)0), min(top + s.window_height, s.height), max(left, (int64_t)0),
            min(left + s.window_width, s.width)};
}

template <typename T, bool largest>
__global__ void __launch_bounds__(element_threads)
    pool_forward(T *y, const T *x, struct pool s, int64_t count)
{
    typedef typename computed<T>::type C;
    for (int64_t i = first_element(); i < count; i += next_element()) {
        place p = place_of(s, s.out_height, s.out_width, i);
        const patch window = window_of(s, p.h, p.w);
        C value = largest ? (C)-INFINITY : 0;
        for (p.h = window.top; p.h < window.bottom; ++p.h)
            for (p.w = window.left; p.w < window.right; ++p.w) {
                const C pixel = to_computed(x[at(s, s.height, s.width, p)]);
                value = !largest ? value + pixel : pixel > value ? pixel : value;
            }
        y[i] = to_stored<T>(largest ? value : value / (C)(s.window_height * s.window_width));
    }
}

/* Whether the pixel at p is the largest of the window, and of equal ones the first. */
template <typename T>
__device__ static inline bool is_largest(const T *x, const struct pool &s, const place &p,
                                         const patch &window)
{
    typedef typename computed<T>::type C;
    const C own = to_computed(x[at(s, s.height, s.width, p)]);
    for (int64_t h = window.top; h < window.bottom; ++h)
        for (int64_t w = window.left; w < window.right; ++w) {
            const C other = to_computed(x[at(s, s.height, s.width, {p.n, p.c, h, w})]);
            const bool before = h < p.h || (h == p.h && w < p.w);
            if (other > own || (before && other == own))
                return false;
        }
    return true;
}

/* The first window along an axis that reaches a pixel, if any does. */
__device__ static inline int64_t first_reaching(int64_t pixel, int64_t pad, int64_t window,
                                                int64_t stride)
{
    const int64_t least = pixel + pad - window + 1;
    return least <= 0 ? 0 : (least + stride - 1) / stride;
}

/* A pixel adds up what the windows give that it is in. */
template <typename T, bool largest>
__global__ void __launch_bounds__(element_threads)
    pool_backward(T *dx, const T *x, const T *dy, struct pool s, int64_t count)
{
    typedef typename computed<T>::type C;
    for (int64_t i = first_element(); i < count; i += next_element()) {
        const place p = place_of(s, s.height, s.width, i);
        const int64_t end_h = min((p.h + s.pad_height) / s.stride + 1, s.out_height);
        const int64_t end_w = min((p.w + s.pad_width) / s.stride + 1, s.out_width);
        C sum = 0;
        for (int64_t h = first_reaching(p.h, s.pad_height, s.window_height, s.stride); h < end_h;
             ++h)
            for (int64_t w = first_reaching(p.w, s.pad_width, s.window_width, s.stride); w < end_w;
                 ++w)
                if (!largest || is_largest(x, s, p, window_of(s, h, w)))
                    sum += (C)to_computed(dy[at(s, s.out_height, s.out_width, {p.n, p.c, h, w})]);
        dx[i] = to_stored<T>(largest ? sum : sum / (C)(s.window_height * s.window_width));
    }
}

template <typename T>
static cudaError_t forward(const struct pool *s, void *y, const void *x, cudaStream_t stream)
{
    auto *kernel = s->operation == POOL_MAX ? pool_forward<T, true> : pool_forward<T, false>;
    const int64_t count = s->batch * s->out_height * s->out_width * s->channels;
    kernel<<<element_blocks(count), element_threads, 0, stream>>>((T *)y, (const T *)x, *s, count);
    return cudaGetLastError();
}

cudaError_t kernel_pool(const struct pool *s, void *y, const void *x, cudaStream_t stream)
{
    BY_PRECISION(s->precision, forward, s, y, x, stream)
}

template <typename T>
static cudaError_t backward(const struct pool *s, void *dx, const void *x, const void *dy,
                            cudaStream_t stream)
{
    auto *kernel = s->operation == POOL_MAX ? pool_backward<T, true> : pool_backward<T, false>;
    const int64_t count = s->batch * s->height * s->width * s->channels;
    kernel<<<element_blocks(count), element_threads, 0, stream>>>((T *)dx, (const T *)x,
                                                                  (const T *)dy, *s, count);
    return cudaGetLastError();
}

cudaError_t kernel_pool_gradient(const struct pool *s, void *dx, const void *x, const void *dy,
                                 cudaStream_t stream)
{
    BY_PRECISION(s->precision, backward, s, dx, x, dy, stream)
}
