#include "kernels.h"

#include "element.cuh"
#include "layout.cuh"

/* Pools: a thread computes one element from the definition. */

__device__ static inline extents x_extents(const struct pool &s)
{
    return {(int)s.height, (int)s.width, (int)s.channels, s.layout == LAYOUT_NHWC};
}
__device__ static inline extents y_extents(const struct pool &s)
{
    return {(int)s.out_height, (int)s.out_width, (int)s.channels, s.layout == LAYOUT_NHWC};
}

/* Rows top to bottom - 1 and columns left to right - 1 of the input, which a window covers. */
struct patch {
    int top, bottom, left, right;
};

__device__ static inline patch window_of(const struct pool &s, int h, int v)
{
    const int top = h * (int)s.stride_height - (int)s.pad_height;
    const int left = v * (int)s.stride_width - (int)s.pad_width;
    return {max(top, 0), min(top + (int)s.window_height, (int)s.height), max(left, 0),
            min(left + (int)s.window_width, (int)s.width)};
}

template <typename T, bool largest>
__global__ void __launch_bounds__(element_threads)
    pool_forward(T *y, const T *x, struct pool s, int64_t count)
{
    typedef typename computed<T>::type C;
    for (int64_t i = first_element(); i < count; i += next_element()) {
        const place p = place_of(y_extents(s), i);
        const patch window = window_of(s, p.h, p.v);
        C value = largest ? (C)-INFINITY : 0;
        for (int h = window.top; h < window.bottom; ++h)
            for (int v = window.left; v < window.right; ++v) {
                const C pixel = to_computed(x[at(x_extents(s), p.outer, h, v, p.c)]);
                value = !largest ? value + pixel : pixel > value ? pixel : value;
            }
        y[i] = to_stored<T>(largest ? value : value / (C)(s.window_height * s.window_width));
    }
}

/* Returns whether the pixel at p is the largest of the window; of equal pixels the first counts. */
template <typename T>
__device__ static inline bool is_largest(const T *x, const struct pool &s, const place &p,
                                         const patch &window)
{
    typedef typename computed<T>::type C;
    const C own = to_computed(x[at(x_extents(s), p.outer, p.h, p.v, p.c)]);
    for (int h = window.top; h < window.bottom; ++h)
        for (int v = window.left; v < window.right; ++v) {
            const C other = to_computed(x[at(x_extents(s), p.outer, h, v, p.c)]);
            const bool before = h < p.h || (h == p.h && v < p.v);
            if (other > own || (before && other == own))
                return false;
        }
    return true;
}

/* Returns the first window along an axis that may reach a pixel. */
__device__ static inline int first_reaching(int pixel, int64_t pad, int64_t window, int64_t stride)
{
    const int least = pixel + (int)(pad - window) + 1;
    return least <= 0 ? 0 : (least + (int)stride - 1) / (int)stride;
}

/* The gradient of a pixel is the sum over the windows that contain it. */
template <typename T, bool largest>
__global__ void __launch_bounds__(element_threads)
    pool_backward(T *dx, const T *x, const T *dy, struct pool s, int64_t count)
{
    typedef typename computed<T>::type C;
    for (int64_t i = first_element(); i < count; i += next_element()) {
        const place p = place_of(x_extents(s), i);
        const int first_v = first_reaching(p.v, s.pad_width, s.window_width, s.stride_width);
        C sum = 0;
        for (int h = first_reaching(p.h, s.pad_height, s.window_height, s.stride_height);
             h < s.out_height && h * s.stride_height - s.pad_height <= p.h; ++h)
            for (int v = first_v; v < s.out_width && v * s.stride_width - s.pad_width <= p.v; ++v)
                if (!largest || is_largest(x, s, p, window_of(s, h, v)))
                    sum += (C)to_computed(dy[at(y_extents(s), p.outer, h, v, p.c)]);
        dx[i] = to_stored<T>(largest ? sum : sum / (C)(s.window_height * s.window_width));
    }
}

cudaError_t kernel_pool(const struct pool *s, void *y, const void *x, cudaStream_t stream)
{
    const int64_t count = s->batch * s->out_height * s->out_width * s->channels;
    return by_precision(s->precision, [&](auto element) {
        typedef decltype(element) T;
        auto *kernel = s->operation == POOL_MAX ? pool_forward<T, true> : pool_forward<T, false>;
        kernel<<<element_blocks(count), element_threads, 0, stream>>>((T *)y, (const T *)x, *s,
                                                                      count);
    });
}

cudaError_t kernel_pool_gradient(const struct pool *s, void *dx, const void *x, const void *dy,
                                 cudaStream_t stream)
{
    const int64_t count = s->batch * s->height * s->width * s->channels;
    return by_precision(s->precision, [&](auto element) {
        typedef decltype(element) T;
        auto *kernel = s->operation == POOL_MAX ? pool_backward<T, true> : pool_backward<T, false>;
        kernel<<<element_blocks(count), element_threads, 0, stream>>>((T *)dx, (const T *)x,
                                                                      (const T *)dy, *s, count);
    });
}
