#include "kernels.h"

#include "activation.cuh"
#include "element.cuh"

/* A convolution written from the definition, and the other steps of a layer. Each thread computes
 * one element of the result; only the caches reuse data. */

/* A tensor [outer][height][width][channels], or [outer][channels][height][width]. */
struct extents {
    int height, width, channels;
    bool nhwc;
};

__device__ static inline int64_t at(extents e, int64_t outer, int h, int v, int c)
{
    return e.nhwc ? ((outer * e.height + h) * e.width + v) * e.channels + c
                  : ((outer * e.channels + c) * e.height + h) * e.width + v;
}

struct place {
    int outer, h, v, c;
};

__device__ static inline place place_of(extents e, int64_t i)
{
    int64_t size = (int64_t)e.height * e.width * e.channels, rest = i % size;
    int64_t pixel = e.nhwc ? rest / e.channels : rest % ((int64_t)e.height * e.width);
    int c = (int)(e.nhwc ? rest % e.channels : rest / ((int64_t)e.height * e.width));
    return {(int)(i / size), (int)(pixel / e.width), (int)(pixel % e.width), c};
}

/* struct conv2d with int members in place of int64_t, for the kernels. */
struct geometry {
    int batch, height, width, channels, filters, kernel_height, kernel_width;
    int stride_height, stride_width, pad_height, pad_width, dilation_height, dilation_width;
    int out_height, out_width;
    int group_channels, group_filters;
    bool nhwc;
};

/* clang-format off */
static geometry geometry_of(const struct conv2d *s)
{
    return {(int)s->batch, (int)s->height, (int)s->width, (int)s->channels, (int)s->filters,
            (int)s->kernel_height, (int)s->kernel_width, (int)s->stride_height,
            (int)s->stride_width, (int)s->pad_height, (int)s->pad_width, (int)s->dilation_height,
            (int)s->dilation_width, (int)s->out_height, (int)s->out_width,
            (int)(s->channels / s->groups), (int)(s->filters / s->groups),
            s->layout == LAYOUT_NHWC};
}
/* clang-format on */

__device__ static inline extents x_extents(const geometry &g)
{
    return {g.height, g.width, g.channels, g.nhwc};
}
__device__ static inline extents w_extents(const geometry &g)
{
    return {g.kernel_height, g.kernel_width, g.group_channels, g.nhwc};
}
__device__ static inline extents y_extents(const geometry &g)
{
    return {g.out_height, g.out_width, g.filters, g.nhwc};
}

/* ---- the three convolutions ---- */

template <typename T>
__global__ void __launch_bounds__(element_threads)
    conv2d_forward(T *y, const T *x, const T *w, const T *b, geometry g, bool finish,
                   enum activation activation, int64_t count)
{
    typedef typename computed<T>::type C;
    for (int64_t i = first_element(); i < count; i += next_element()) {
        place p = place_of(y_extents(g), i);
        int channel = p.c / g.group_filters * g.group_channels;
        C sum = 0;
        for (int r = 0; r < g.kernel_height; ++r)
            for (int q = 0; q < g.kernel_width; ++q) {
                int h = p.h * g.stride_height - g.pad_height + r * g.dilation_height;
                int v = p.v * g.stride_width - g.pad_width + q * g.dilation_width;
                if (h < 0 || h >= g.height || v < 0 || v >= g.width)
                    continue;
                for (int c = 0; c < g.group_channels; ++c)
                    sum = fma((C)to_computed(x[at(x_extents(g), p.outer, h, v, channel + c)]),
                              (C)to_computed(w[at(w_extents(g), p.c, r, q, c)]), sum);
            }
        if (finish)
            sum = activated(activation, b ? sum + (C)to_computed(b[p.c]) : sum);
        y[i] = to_stored<T>(sum);
    }
}

template <typename T>
__global__ void __launch_bounds__(element_threads)
    conv2d_backward_data(T *dx, const T *w, const T *dy, geometry g, int64_t count)
{
    typedef typename computed<T>::type C;
    for (int64_t i = first_element(); i < count; i += next_element()) {
        place p = place_of(x_extents(g), i);
        int filter = p.c / g.group_channels * g.group_filters, channel = p.c % g.group_channels;
        C sum = 0;
        for (int r = 0; r < g.kernel_height; ++r)
            for (int q = 0; q < g.kernel_width; ++q) {
                int h = p.h + g.pad_height - r * g.dilation_height;
                int v = p.v + g.pad_width - q * g.dilation_width;
                if (h < 0 || v < 0 || h % g.stride_height != 0 || v % g.stride_width != 0 ||
                    h / g.stride_height >= g.out_height || v / g.stride_width >= g.out_width)
                    continue;
                for (int k = filter; k < filter + g.group_filters; ++k)
                    sum = fma((C)to_computed(w[at(w_extents(g), k, r, q, channel)]),
                              (C)to_computed(dy[at(y_extents(g), p.outer, h / g.stride_height,
                                                   v / g.stride_width, k)]),
                              sum);
            }
        dx[i] = to_stored<T>(sum);
    }
}

/* Computes a sum for each image and then adds the images' sums, because one sum over all pixels
 * would lose digits. */
template <typename T>
__global__ void __launch_bounds__(element_threads)
    conv2d_backward_filter(T *dw, const T *x, const T *dy, geometry g, int64_t count)
{
    typedef typename computed<T>::type C;
    for (int64_t i = first_element(); i < count; i += next_element()) {
        place p = place_of(w_extents(g), i);
        int channel = p.outer / g.group_filters * g.group_channels + p.c;
        C sum = 0;
        for (int n = 0; n < g.batch; ++n) {
            C image = 0;
            for (int out_h = 0; out_h < g.out_height; ++out_h) {
                int h = out_h * g.stride_height - g.pad_height + p.h * g.dilation_height;
                if (h < 0 || h >= g.height)
                    continue;
                for (int out_v = 0; out_v < g.out_width; ++out_v) {
                    int v = out_v * g.stride_width - g.pad_width + p.v * g.dilation_width;
                    if (v >= 0 && v < g.width)
                        image = fma((C)to_computed(x[at(x_extents(g), n, h, v, channel)]),
                                    (C)to_computed(dy[at(y_extents(g), n, out_h, out_v, p.outer)]),
                                    image);
                }
            }
            sum += image;
        }
        dw[i] = to_stored<T>(sum);
    }
}

/* ---- the other steps of a layer ---- */

template <typename T>
__global__ void __launch_bounds__(element_threads)
    conv2d_finish(T *y, const T *b, geometry g, enum activation activation, int64_t count)
{
    typedef typename computed<T>::type C;
    for (int64_t i = first_element(); i < count; i += next_element()) {
        C z = to_computed(y[i]);
        if (b)
            z += (C)to_computed(b[place_of(y_extents(g), i).c]);
        y[i] = to_stored<T>(activated(activation, z));
    }
}

template <typename T>
__global__ void __launch_bounds__(element_threads)
    conv2d_slope(T *dz, const T *dy, const T *y, enum activation activation, int64_t count)
{
    typedef typename computed<T>::type C;
    for (int64_t i = first_element(); i < count; i += next_element())
        dz[i] = to_stored<T>((C)to_computed(dy[i]) * slope_of(activation, (C)to_computed(y[i])));
}

/* A block sums `width` filters: several in NHWC, where filters are neighbours in memory, and one in
 * NCHW. */
template <typename T, int threads, int width>
__global__ void __launch_bounds__(threads) conv2d_bias_gradient(T *db, const T *dz, geometry g)
{
    typedef typename computed<T>::type C;
    __shared__ C sums[threads];
    const int lines = threads / width, first = threadIdx.x / width;
    const int64_t filter = (int64_t)blockIdx.x * width + threadIdx.x % width;
    const int64_t image = (int64_t)g.out_height * g.out_width; /* pixels; may exceed an int */
    /* A row is the longest run of a filter's pixels at equal distances: in NHWC the pixels of all
     * images, in NCHW the pixels of one image. */
    const int64_t row = width > 1 ? g.batch * image : image, step = width > 1 ? g.filters : 1;
    const int64_t turn = lines % row, next = lines / row * g.filters * row + turn * step;
    const int64_t carry = (g.filters - 1) * row;
    int64_t place = first % row;
    long_sum<C> sum;
    dz += first / row * g.filters * row + place * step + filter * (width > 1 ? 1 : row);
#pragma unroll 8
    for (int64_t left = filter < g.filters ? g.batch * image - first : 0; left > 0; left -= lines) {
        sum.add(to_computed(*dz));
        dz += next;
        place += turn;
        if (place >= row) { /* the pixel is in the next row */
            place -= row;
            dz += carry;
        }
    }
    sums[threadIdx.x] = sum.value();
    for (int half = threads / 2; half >= width; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x < width && filter < g.filters)
        db[filter] = to_stored<T>(sums[threadIdx.x]);
}

template <typename T>
__global__ void __launch_bounds__(element_threads)
    sgd_update(T *updated, const T *w, const T *dw, typename computed<T>::type rate, int64_t count)
{
    typedef typename computed<T>::type C;
    for (int64_t i = first_element(); i < count; i += next_element())
        updated[i] = to_stored<T>(fma(-rate, (C)to_computed(dw[i]), (C)to_computed(w[i])));
}

/* ---- launchers ---- */

static int64_t y_elements(const struct conv2d *s)
{
    return s->batch * s->out_height * s->out_width * s->filters;
}

cudaError_t kernel_conv2d(const struct conv2d *s, const struct conv2d_arrays *m,
                          cudaStream_t stream)
{
    const geometry g = geometry_of(s);
    const int64_t count = s->pass == CONV2D_FORWARD ? y_elements(s)
                          : s->pass == CONV2D_BACKWARD_DATA
                              ? s->batch * s->height * s->width * s->channels
                              : s->filters * s->kernel_height * s->kernel_width * g.group_channels;
    const int blocks = element_blocks(count);
    if (s->precision == PRECISION_TF32)
        return cudaErrorInvalidValue;
    return by_precision(s->precision, [&](auto element) {
        typedef decltype(element) T;
        T *x = (T *)m->x, *w = (T *)m->w, *y = (T *)m->y;
        if (s->pass == CONV2D_FORWARD)
            conv2d_forward<T><<<blocks, element_threads, 0, stream>>>(
                y, x, w, (const T *)m->b, g, m->finish, s->activation, count);
        else if (s->pass == CONV2D_BACKWARD_DATA)
            conv2d_backward_data<T><<<blocks, element_threads, 0, stream>>>(x, w, y, g, count);
        else
            conv2d_backward_filter<T><<<blocks, element_threads, 0, stream>>>(w, x, y, g, count);
    });
}

cudaError_t kernel_conv2d_finish(const struct conv2d *s, void *y, const void *b,
                                 cudaStream_t stream)
{
    const int64_t count = y_elements(s);
    return by_precision(s->precision, [&](auto element) {
        typedef decltype(element) T;
        conv2d_finish<T><<<element_blocks(count), element_threads, 0, stream>>>(
            (T *)y, (const T *)b, geometry_of(s), s->activation, count);
    });
}

cudaError_t kernel_conv2d_slope(const struct conv2d *s, void *dz, const void *dy, const void *y,
                                cudaStream_t stream)
{
    const int64_t count = y_elements(s);
    return by_precision(s->precision, [&](auto element) {
        typedef decltype(element) T;
        conv2d_slope<T><<<element_blocks(count), element_threads, 0, stream>>>(
            (T *)dz, (const T *)dy, (const T *)y, s->activation, count);
    });
}

/* If there are few blocks, each has more threads, so that more reads are in flight. With more than
 * four filters for each block there would be fewer blocks; with fewer than four, more blocks would
 * read the same sectors. */
cudaError_t kernel_conv2d_bias_gradient(const struct conv2d *s, void *db, const void *dz,
                                        cudaStream_t stream)
{
    const int few = element_threads, many = 1024, width = 4;
    const int64_t pixels = s->batch * s->out_height * s->out_width;
    const unsigned filters = (unsigned)s->filters; /* blocks in NCHW: one for each filter */
    const unsigned blocks = (unsigned)((s->filters + width - 1) / width);
    const geometry g = geometry_of(s);
    return by_precision(s->precision, [&](auto element) {
        typedef decltype(element) T;
        T *to = (T *)db;
        const T *from = (const T *)dz;
        if (g.nhwc)
            conv2d_bias_gradient<T, many, width><<<blocks, many, 0, stream>>>(to, from, g);
        else if (pixels <= 4 * many || s->filters > 256)
            conv2d_bias_gradient<T, few, 1><<<filters, few, 0, stream>>>(to, from, g);
        else
            conv2d_bias_gradient<T, many, 1><<<filters, many, 0, stream>>>(to, from, g);
    });
}

cudaError_t kernel_update(enum precision precision, void *updated, const void *w, const void *dw,
                          double rate, int64_t count, cudaStream_t stream)
{
    return by_precision(precision, [&](auto element) {
        typedef decltype(element) T;
        sgd_update<T><<<element_blocks(count), element_threads, 0, stream>>>(
            (T *)updated, (const T *)w, (const T *)dw, (typename computed<T>::type)rate, count);
    });
}
