#include "kernels.h"

#include <limits.h>

#include "strips.cuh"

/* The gradient of a maximum: each window gives all to its largest pixel, the first of equal ones. */

/* Of a chunk. Each begins with a row or two that another makes as well. */
static int strip_rows(const struct pool *p)
{
    const int64_t most = 32, all = (p->height + p->pad_height + p->stride - 1) / p->stride;
    const int64_t chunks = (all + most - 1) / most;
    return (int)((all + chunks - 1) / chunks);
}

/* A block's threads: so many pieces of a pixel, and as many columns of windows as are left. */
struct strip_block {
    int across, columns;
    unsigned across_blocks, column_blocks;
};
static strip_block strip_block_make(const struct pool *p, const strips &s)
{
    const int before = (int)((p->window_width - 1) / p->stride); /* columns that make no pixels */
    const int across = p->layout == LAYOUT_NHWC ? 8 : 1, columns = strip_threads / across;
    return {across, columns, (unsigned)((s.across + across - 1) / across),
            (s.beside + (unsigned)(columns - before) - 1) / (unsigned)(columns - before)};
}
static double strip_blocks(const strips &s, const strip_block &b)
{
    return (double)b.across_blocks * b.column_blocks * s.below * s.images;
}

/* A thread's piece of a pixel, column of windows, chunk of rows. */
struct strip_place {
    int at, window, chunk;
    int64_t image;
    bool has, makes; /* a piece of a pixel; pixels */
};
template <int before>
__device__ static inline strip_place strip_place_of(const strips &s, const strip_block &b)
{
    strip_place mine;
    unsigned i = blockIdx.x;
    const int column = (int)threadIdx.x / b.across;
    mine.at = (int)(i % b.across_blocks) * b.across + (int)threadIdx.x % b.across;
    i /= b.across_blocks;
    mine.window = (int)(i % b.column_blocks) * (b.columns - before) + column - before;
    i /= b.column_blocks;
    mine.chunk = (int)(i % s.below);
    mine.image = i / s.below;
    mine.has = mine.at < s.across;
    mine.makes = mine.has && column >= before;
    return mine;
}

/* ---- small squares: the largest pixel of each line of a window, then the largest of these ---- */

/* Of several values beside each other the largest, and where it is: a bit for each place, those of a word's
 * values 16 bits apart, those of the next word behind those of the first. */
template <typename T, int lanes, int side> struct first_largest {
    words<T, lanes> v;
    unsigned places;

    __device__ void find(const words<T, lanes> *x)
    {
        const unsigned one = v.values > 1 ? 0x10001 : 1;
        places = 0;
#pragma unroll
        for (int i = 0; i < v.count; ++i) {
            unsigned place = one << (i * side);
            v.at[i] = x[0].at[i];
#pragma unroll
            for (int j = 1; j < side; ++j) {
                const unsigned mask = where_greater(x[j].at[i], v.at[i]);
                place = (mask & (one << (i * side + j))) | (~mask & place);
                v.at[i] = greater(x[j].at[i], v.at[i]);
            }
            places |= place;
        }
    }
    static __device__ bool is(unsigned places, int lane, int place)
    {
        const int values = words<T, lanes>::values;
        return places & (1u << (lane / values * side + lane % values * 16 + place));
    }
};

/* What threads of a block tell each other: what their windows give to lines, and where in each line. */
template <typename T, int lanes, int stride> struct shared_lines {
    typedef typename computed<T>::type C;
    static const int part = lanes * (int)sizeof(C) < 16 ? lanes : 16 / (int)sizeof(C);
    piece<C, part> given[stride][lanes / part][strip_threads];
    unsigned places[stride][strip_threads];

    __device__ void put(int line, const sums<T, lanes> &mine, unsigned where)
    {
        places[line][threadIdx.x] = where;
#pragma unroll
        for (int i = 0; i < lanes / part; ++i)
            given[line][i][threadIdx.x] = ((const piece<C, part> *)mine.at)[i];
    }
    __device__ sums<T, lanes> get(int line, int thread) const
    {
        sums<T, lanes> its;
#pragma unroll
        for (int i = 0; i < lanes / part; ++i)
            ((piece<C, part> *)its.at)[i] = given[line][i][thread];
        return its;
    }
};

/* A thread has the windows of one column, and goes down. What the next one needs is on its way. What windows
 * give to a line is added up until all have given. Then it goes to those of each window's pixels there that
 * is the largest, by way of shared memory, since windows overlap. So each thread makes `stride` pixels of a
 * line, and a block's first threads none. */
template <typename T, int lanes, int side, int stride>
__global__ void __launch_bounds__(strip_threads, 4)
    max_strips(T *dx, const T *x, const T *dy, strips s, strip_block b)
{
    typedef words<T, lanes> pixel;
    typedef first_largest<T, lanes, side> found;
    typedef strip_reach<side, stride> reach;
    __shared__ shared_lines<T, lanes, stride> shared[2];
    const strip_place mine = strip_place_of<reach::before>(s, b);
    const int across = (int)s.across, left = mine.window * stride - s.pad_width;
    const int64_t in = mine.image * s.in_height * s.in_width * across + mine.at;
    const int64_t out = mine.image * s.out_height * s.out_width * across + mine.at;
    const int kept = side > stride ? side - stride : 0, fresh = side - kept; /* lines of a window */
    sums<T, lanes> line[side];                                               /* what windows give */
    unsigned places[side]; /* of the largest in each line */
    pixel largest[side], next[fresh][side], next_given;
    auto load = [&](pixel *v, int at) {
        line_load<side>(v, (const pixel *)x + in, across, mine.has ? s.in_height : 0, s.in_width,
                        at, left, words_filled<T, lanes>(-INFINITY));
    };
    auto load_row = [&](int row) {
#pragma unroll
        for (int j = 0; j < fresh; ++j)
            load(next[j], row * stride - s.pad_height + kept + j);
        line_load<1>(&next_given, (const pixel *)dy + out, across, mine.has ? s.out_height : 0,
                     s.out_width, row, mine.window, words_filled<T, lanes>(0));
    };
    auto find = [&](int j, const pixel *v) {
        found f;
        f.find(v);
        largest[j] = f.v;
        places[j] = f.places;
        line[j].clear();
    };
    const int begin = mine.chunk * s.rows, end = begin + s.rows;
    int row = begin - reach::before, turn = 0;
    pixel first[side][side];
#pragma unroll
    for (int j = 0; j < kept; ++j)
        load(first[j], row * stride - s.pad_height + j);
    load_row(row);
#pragma unroll
    for (int j = 0; j < kept; ++j)
        find(j, first[j]);
#pragma unroll 1
    for (; row < end; ++row, turn ^= 1) {
        pixel v[fresh][side];
        sums<T, lanes> d;
        found lines;
        d.set(next_given);
#pragma unroll
        for (int i = 0; i < fresh * side; ++i)
            v[i / side][i % side] = next[i / side][i % side];
        if (row + 1 < end)
            load_row(row + 1);
#pragma unroll
        for (int j = 0; j < fresh; ++j)
            find(kept + j, v[j]);
        lines.find(largest);
#pragma unroll
        for (int i = 0; i < lanes * side; ++i)
            if (found::is(lines.places, i / side, i % side))
                line[i % side].at[i / side] += d.at[i / side];
#pragma unroll
        for (int j = 0; j < stride; ++j)
            shared[turn].put(j, line[j], places[j]);
        __syncthreads(); /* one a row: what others still read of the row before is elsewhere */
        if (row >= begin && mine.makes)
#pragma unroll
            for (int j = 0; j < stride; ++j) {
                sums<T, lanes> all[stride];
                pixel result[stride];
#pragma unroll
                for (int i = 0; i < stride; ++i)
                    all[i].clear();
#pragma unroll
                for (int w = 0; w <= reach::before; ++w) {
                    const int other = (int)threadIdx.x - (reach::before - w) * b.across;
                    const unsigned where = shared[turn].places[j][other];
                    const sums<T, lanes> its = shared[turn].get(j, other);
#pragma unroll
                    for (int i = 0; i < stride * lanes; ++i)
                        if (reach::has(i / lanes, w) &&
                            found::is(where, i % lanes, reach::place(i / lanes, w)))
                            all[i / lanes].at[i % lanes] += its.at[i % lanes];
                }
#pragma unroll
                for (int i = 0; i < stride; ++i)
                    result[i] = all[i].times(1);
                line_store<stride>((pixel *)dx + in, result, across, s.in_height, s.in_width,
                                   row * stride - s.pad_height + j, left);
            }
#pragma unroll
        for (int j = 0; j < kept; ++j) {
            largest[j] = largest[j + stride];
            places[j] = places[j + stride];
            line[j] = line[j + stride];
        }
    }
}

/* ---- other windows ---- */

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

/* Of the window that begins at row `top` and column `left`. */
template <typename T, int lanes>
__device__ static inline largest_place<T, lanes> find(const piece<T, lanes> *image, const images &s,
                                                      int top, int left)
{
    largest_place<T, lanes> found;
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
template <typename T, int lanes>
__global__ void __launch_bounds__(tile_threads, 3)
    max_tiles(T *dx, const T *x, const T *dy, images s, tile t)
{
    typedef typename computed<T>::type C;
    extern __shared__ uint4 memory[];
    piece<uint16_t, lanes> *places = (piece<uint16_t, lanes> *)memory;
    const tile_place place = tile_place_of(s, t);
    const bool mine = place.at < s.across;
    const unsigned across = threadIdx.x % t.across, line = threadIdx.x / t.across;
    const reach rows = reach_of(place.row, place.row + (int)t.rows * tile_turns, s.out_height,
                                s.window_height, s.stride, s.pad_height);
    const reach columns = reach_of(place.column, place.column + (int)t.columns, s.out_width,
                                   s.window_width, s.stride, s.pad_width);
    const int width = columns.last - columns.first + 1;
    const int windows = max(rows.last - rows.first + 1, 0) * max(width, 0);
    const piece<T, lanes> *image =
        (const piece<T, lanes> *)x + place.image * s.in_height * s.in_width * s.across + place.at;
    for (int i = (int)line; mine && i < windows; i += tile_threads / (int)t.across) {
        const largest_place<T, lanes> found =
            find<T, lanes>(image, s, (rows.first + i / width) * s.stride - s.pad_height,
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
    for (int turn = 0; turn < tile_turns && row < s.in_height; ++turn, row += (int)t.rows) {
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
    max_wide(T *dx, const T *x, const T *dy, images s, tile t)
{
    typedef typename computed<T>::type C;
    const tile_place place = tile_place_of(s, t);
    int column = place.column + (int)(threadIdx.x / t.across % t.columns);
    int row = place.row + (int)(threadIdx.x / (t.across * t.columns));
    const T *image = x + place.image * s.in_height * s.in_width * s.across + place.at;
    const T *from = dy + place.image * s.out_height * s.out_width * s.across + place.at;
    if (place.at >= s.across || column >= s.in_width)
        return;
    reach beside = reach_of(column, column + 1, s.out_width, s.window_width, s.stride, s.pad_width);
    for (int turn = 0; turn < tile_turns && row < s.in_height; ++turn, row += (int)t.rows) {
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
    int64_t rows = ((int64_t)t.rows * tile_turns + s.window_height - 2) / s.stride + 1;
    int64_t columns = ((int64_t)t.columns + s.window_width - 2) / s.stride + 1;
    return rows * columns * t.across * lanes * (int64_t)sizeof(uint16_t);
}

template <typename T, int lanes>
static cudaError_t launch_tiles(const struct pool *p, T *dx, const T *x, const T *dy,
                                cudaStream_t stream)
{
    const int64_t shared_most = 32 << 10, places_most = 65535; /* byte; of a window */
    const tile &t = images_tile(p);
    images s = images_make(p, lanes, t, p->height, p->width);
    const int64_t bytes = places_bytes(s, t, lanes);
    const bool fits = bytes <= shared_most && p->window_height * p->window_width < places_most;
    if (!fits) /* one value a thread */
        s = images_make(p, 1, t, p->height, p->width);
    if (images_blocks(s) > INT_MAX)
        return cudaErrorInvalidValue;
    (fits ? max_tiles<T, lanes>
          : max_wide<
                T>)<<<(unsigned)images_blocks(s), tile_threads, fits ? (size_t)bytes : 0, stream>>>(
        dx, x, dy, s, t);
    return cudaGetLastError();
}

template <typename T, int lanes>
static cudaError_t launch_lanes(const struct pool *p, T *dx, const T *x, const T *dy,
                                cudaStream_t stream)
{
    typedef void kernel(T *, const T *, const T *, strips, strip_block);
    static kernel *const kernels[2][2] = {{max_strips<T, lanes, 2, 1>, max_strips<T, lanes, 2, 2>},
                                          {max_strips<T, lanes, 3, 1>, max_strips<T, lanes, 3, 2>}};
    const strips s = strips_backward(p, lanes, strip_rows(p));
    const strip_block b = strip_block_make(p, s);
    if (!strips_have(p) || !strips_fit(s) || strip_blocks(s, b) > INT_MAX)
        return launch_tiles<T, lanes>(p, dx, x, dy, stream);
    kernels[p->window_height - 2]
           [p->stride - 1]<<<(unsigned)strip_blocks(s, b), strip_threads, 0, stream>>>(dx, x, dy, s,
                                                                                       b);
    return cudaGetLastError();
}

template <typename T>
static cudaError_t launch(const struct pool *p, void *dx, const void *x, const void *dy,
                          cudaStream_t stream)
{
    const int whole = 16 / (int)sizeof(T);
    auto *function = images_in_pieces(p, whole) ? launch_lanes<T, whole> : launch_lanes<T, 1>;
    return function(p, (T *)dx, (const T *)x, (const T *)dy, stream);
}

cudaError_t pool_max_gradient(const struct pool *s, void *dx, const void *x, const void *dy,
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
