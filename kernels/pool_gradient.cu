#include "kernels.h"

#include <limits.h>

#include "images.cuh"

/* The gradient of a pool, pixel by pixel: what each window that reaches a pixel gives to it. */

static const int turns = 2; /* rows that a thread makes one after the other */

/* The windows that reach a stretch of pixels, along one axis. */
struct reach {
    int first, last;
};
__device__ static inline reach reach_of(int begin, int end, int out, int window, int stride,
                                        int pad)
{
    int beyond = begin + pad - window + 1;
    return {beyond <= 0 ? 0 : (beyond + stride - 1) / stride,
            min(out - 1, (end - 1 + pad) / stride)};
}

template <typename T, int lanes>
__device__ static inline void add(typename computed<T>::type *sums, const piece<T, lanes> &dy)
{
#pragma unroll
    for (int i = 0; i < lanes; ++i)
        sums[i] += to_computed(dy.at[i]);
}

template <typename T, int lanes>
__global__ void __launch_bounds__(tile_threads, 3)
    pool_average_gradient(T *dx, const T *, const T *dy, images s, tile t)
{
    typedef typename computed<T>::type C;
    const C share = (C)1 / (C)(s.window_height * s.window_width);
    const tile_place place = tile_place_of(s, t, turns);
    int column = place.column + (int)(threadIdx.x / t.across % t.columns);
    int row = place.row + (int)(threadIdx.x / (t.across * t.columns));
    const piece<T, lanes> *from = (const piece<T, lanes> *)dy +
                                  place.image * s.out_height * s.out_width * s.across + place.at;
    piece<T, lanes> *to =
        (piece<T, lanes> *)dx + place.image * s.in_height * s.in_width * s.across + place.at;
    if (place.at >= s.across || column >= s.in_width)
        return;
    reach beside = reach_of(column, column + 1, s.out_width, s.window_width, s.stride, s.pad_width);
    for (int turn = 0; turn < turns && row < s.in_height; ++turn, row += (int)t.rows) {
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

/* ---- the largest ---- */

/* Of each lane its largest value, and where in the window it lies: the first of equal ones. */
template <typename T, int lanes> struct largest_place {
    typedef typename computed<T>::type C;
    C value[lanes];
    int at[lanes];

    __device__ largest_place()
    {
#pragma unroll
        for (int i = 0; i < lanes; ++i) {
            value[i] = -INFINITY;
            at[i] = -1;
        }
    }
    __device__ void add(const piece<T, lanes> &x, int place)
    {
#pragma unroll
        for (int i = 0; i < lanes; ++i) {
            C v = to_computed(x.at[i]);
            if (v > value[i]) {
                value[i] = v;
                at[i] = place;
            }
        }
    }
};

/* Of the window that begins at row `top` and column `left`. side: of a square; 0: any. */
template <typename T, int lanes, int side>
__device__ static inline largest_place<T, lanes> find(const piece<T, lanes> *image, const images &s,
                                                      int top, int left)
{
    const bool whole = top >= 0 && left >= 0 && top + s.window_height <= s.in_height &&
                       left + s.window_width <= s.in_width;
    largest_place<T, lanes> found;
    if (side && whole) { /* all loads are in flight together */
        const int each = side ? side : 1;
        piece<T, lanes> x[each * each];
        image += ((int64_t)top * s.in_width + left) * s.across;
#pragma unroll
        for (int i = 0; i < each * each; ++i)
            x[i] = image[(i / each * s.in_width + i % each) * s.across];
#pragma unroll
        for (int i = 0; i < each * each; ++i)
            found.add(x[i], i);
        return found;
    }
#pragma unroll 1
    for (int i = 0; i < s.window_height * s.window_width; ++i) {
        int h = top + i / s.window_width, w = left + i % s.window_width;
        if (h >= 0 && h < s.in_height && w >= 0 && w < s.in_width)
            found.add(image[((int64_t)h * s.in_width + w) * s.across], i);
    }
    return found;
}

/* Where the largest of each window that reaches the block's tile lies, is found once, and kept in shared
 * memory, [rows of windows][columns of windows][across]. */
template <typename T, int lanes, int side>
__global__ void __launch_bounds__(tile_threads, 3)
    pool_max_gradient(T *dx, const T *x, const T *dy, images s, tile t)
{
    typedef typename computed<T>::type C;
    extern __shared__ uint4 memory[];
    piece<uint16_t, lanes> *places = (piece<uint16_t, lanes> *)memory;
    const tile_place place = tile_place_of(s, t, turns);
    const bool mine = place.at < s.across;
    const unsigned across = threadIdx.x % t.across, line = threadIdx.x / t.across;
    const reach rows = reach_of(place.row, place.row + (int)t.rows * turns, s.out_height,
                                s.window_height, s.stride, s.pad_height);
    const reach columns = reach_of(place.column, place.column + (int)t.columns, s.out_width,
                                   s.window_width, s.stride, s.pad_width);
    const int width = columns.last - columns.first + 1;
    const int windows = max(rows.last - rows.first + 1, 0) * max(width, 0);
    const piece<T, lanes> *image =
        (const piece<T, lanes> *)x + place.image * s.in_height * s.in_width * s.across + place.at;
    for (int i = (int)line; mine && i < windows; i += tile_threads / (int)t.across) {
        const largest_place<T, lanes> found =
            find<T, lanes, side>(image, s, (rows.first + i / width) * s.stride - s.pad_height,
                                 (columns.first + i % width) * s.stride - s.pad_width);
        piece<uint16_t, lanes> kept;
#pragma unroll
        for (int j = 0; j < lanes; ++j)
            kept.at[j] = (uint16_t)found.at[j];
        places[i * t.across + across] = kept;
    }
    __syncthreads();
    const int column = place.column + (int)(line % t.columns);
    int row = place.row + (int)(line / t.columns);
    const piece<T, lanes> *from = (const piece<T, lanes> *)dy +
                                  place.image * s.out_height * s.out_width * s.across + place.at;
    piece<T, lanes> *to =
        (piece<T, lanes> *)dx + place.image * s.in_height * s.in_width * s.across + place.at;
    if (!mine || column >= s.in_width)
        return;
    const reach beside =
        reach_of(column, column + 1, s.out_width, s.window_width, s.stride, s.pad_width);
    for (int turn = 0; turn < turns && row < s.in_height; ++turn, row += (int)t.rows) {
        const reach above =
            reach_of(row, row + 1, s.out_height, s.window_height, s.stride, s.pad_height);
        C sums[lanes] = {};
        for (int h = above.first; h <= above.last; ++h)
#pragma unroll 3
            for (int w = beside.first; w <= beside.last; ++w) {
                const piece<T, lanes> given = from[((int64_t)h * s.out_width + w) * s.across];
                const piece<uint16_t, lanes> at =
                    places[((h - rows.first) * width + w - columns.first) * t.across + across];
                const int own = (row - h * s.stride + s.pad_height) * s.window_width + column -
                                w * s.stride + s.pad_width;
#pragma unroll
                for (int i = 0; i < lanes; ++i)
                    sums[i] += at.at[i] == own ? (C)to_computed(given.at[i]) : (C)0;
            }
        piece<T, lanes> result;
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            result.at[i] = to_stored<T>(sums[i]);
        to[((int64_t)row * s.in_width + column) * s.across] = result;
    }
}

/* For windows whose places do not fit into shared memory: a thread for each pixel, which goes through all
 * windows that reach it. Whether it is the largest there mostly shows after a few others. */
template <typename T>
__global__ void __launch_bounds__(tile_threads, 3)
    pool_max_gradient_wide(T *dx, const T *x, const T *dy, images s, tile t)
{
    typedef typename computed<T>::type C;
    const tile_place place = tile_place_of(s, t, turns);
    int column = place.column + (int)(threadIdx.x / t.across % t.columns);
    int row = place.row + (int)(threadIdx.x / (t.across * t.columns));
    const T *image = x + place.image * s.in_height * s.in_width * s.across + place.at;
    const T *from = dy + place.image * s.out_height * s.out_width * s.across + place.at;
    if (place.at >= s.across || column >= s.in_width)
        return;
    reach beside = reach_of(column, column + 1, s.out_width, s.window_width, s.stride, s.pad_width);
    for (int turn = 0; turn < turns && row < s.in_height; ++turn, row += (int)t.rows) {
        reach above = reach_of(row, row + 1, s.out_height, s.window_height, s.stride, s.pad_height);
        const int64_t mine = (int64_t)row * s.in_width + column;
        const C own = to_computed(image[mine * s.across]);
        C sum = 0;
        for (int h = above.first; h <= above.last; ++h)
            for (int w = beside.first; w <= beside.last; ++w) {
                const int top = max(h * s.stride - s.pad_height, 0);
                const int left = max(w * s.stride - s.pad_width, 0);
                const int bottom = min(h * s.stride - s.pad_height + s.window_height, s.in_height);
                const int right = min(w * s.stride - s.pad_width + s.window_width, s.in_width);
                bool first = true; /* of the largest */
                for (int i = top; first && i < bottom; ++i)
                    for (int j = left; first && j < right; ++j) {
                        const int64_t other = (int64_t)i * s.in_width + j;
                        const C value = to_computed(image[other * s.across]);
                        first = other < mine ? value < own : value <= own;
                    }
                if (first)
                    sum += to_computed(from[((int64_t)h * s.out_width + w) * s.across]);
            }
        dx[(place.image * s.in_height * s.in_width + mine) * s.across + place.at] =
            to_stored<T>(sum);
    }
}

/* ---- launches ---- */

/* Of a largest's places, those of the windows that reach a tile. */
static int64_t places_bytes(const images &s, const tile &t, int lanes)
{
    int64_t rows = ((int64_t)t.rows * turns + s.window_height - 2) / s.stride + 1;
    int64_t columns = ((int64_t)t.columns + s.window_width - 2) / s.stride + 1;
    return rows * columns * t.across * lanes * (int64_t)sizeof(uint16_t);
}

template <typename T> using gradient_kernel = void(T *, const T *, const T *, images, tile);

template <typename T, int lanes>
static gradient_kernel<T> *kernel_of(const struct pool *p, bool fits)
{
    const bool square = p->window_height == p->window_width;
    if (p->operation == POOL_AVERAGE)
        return pool_average_gradient<T, lanes>;
    if (!fits)
        return pool_max_gradient_wide<T>;
    return square && p->window_height == 2   ? pool_max_gradient<T, lanes, 2>
           : square && p->window_height == 3 ? pool_max_gradient<T, lanes, 3>
                                             : pool_max_gradient<T, lanes, 0>;
}

template <typename T, int lanes>
static cudaError_t launch_lanes(const struct pool *p, void *dx, const void *x, const void *dy,
                                cudaStream_t stream)
{
    const int64_t shared_most = 32 << 10, places_most = 65535; /* byte; of a window */
    const tile &t = images_tile(p);
    images s = images_make(p, lanes, t, turns, p->height, p->width);
    const int64_t bytes = places_bytes(s, t, lanes);
    const bool fits = bytes <= shared_most && p->window_height * p->window_width < places_most;
    const bool max = p->operation == POOL_MAX;
    if (max && !fits) /* one value a thread */
        s = images_make(p, 1, t, turns, p->height, p->width);
    if (images_blocks(s) > INT_MAX)
        return cudaErrorInvalidValue;
    kernel_of<T, lanes>(p, fits)<<<(unsigned)images_blocks(s), tile_threads,
                                   max && fits ? (size_t)bytes : 0, stream>>>((T *)dx, (const T *)x,
                                                                              (const T *)dy, s, t);
    return cudaGetLastError();
}

template <typename T>
static cudaError_t launch(const struct pool *p, void *dx, const void *x, const void *dy,
                          cudaStream_t stream)
{
    const int whole = 16 / (int)sizeof(T);
    return images_in_pieces(p, whole) ? launch_lanes<T, whole>(p, dx, x, dy, stream)
                                      : launch_lanes<T, 1>(p, dx, x, dy, stream);
}

cudaError_t kernel_pool_gradient(const struct pool *s, void *dx, const void *x, const void *dy,
                                 cudaStream_t stream)
{
    switch (s->precision) {
    case PRECISION_FP64:
        return launch<double>(s, dx, x, dy, stream);
    case PRECISION_FP32:
        return launch<float>(s, dx, x, dy, stream);
    case PRECISION_FP16:
        return launch<__half>(s, dx, x, dy, stream);
    case PRECISION_BF16:
        return launch<__nv_bfloat16>(s, dx, x, dy, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
