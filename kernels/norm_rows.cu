#include "kernels.h"

#include <limits.h>

#include "row.cuh"
#include "word.cuh"

/* Layer norms: a group of threads has a row, in registers if it fits, so that it is read once. */

template <typename C> __device__ static inline C inverse_of(C variance)
{
    return rsqrt(variance + (C)NORM_EPSILON);
}

/* Gamma, beta and what is kept are in the type that is computed in. mean NULL: nothing is kept. */
template <typename T> struct layer {
    typedef typename computed<T>::type C;
    T *y;
    const T *x, *dy;
    const C *gamma, *beta, *mean_given, *inverse_given;
    C *mean, *inverse, *partial;
    int64_t rows, columns;
};

/* A thread's p-th piece of a row, or of an array with a value for each column. */
template <typename P, typename V> __device__ static inline P *beside(V *values, int p)
{
    return (P *)values + p * blockDim.x + threadIdx.x;
}
template <int lanes> __device__ static inline bool has(int p, int64_t columns)
{
    return ((int64_t)p * blockDim.x + threadIdx.x) * lanes < columns;
}

/* The row stays as it is stored; its values are made of it three times. */
template <typename T, int lanes, int pieces>
__global__ void __launch_bounds__(row_threads, 1) layer_forward(layer<T> s)
{
    typedef typename computed<T>::type C;
    __shared__ C room[32];
    const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    words<T, lanes> x[pieces];
    if (row >= s.rows)
        return;
#pragma unroll
    for (int p = 0; p < pieces; ++p)
        x[p] = has<lanes>(p, s.columns)
                   ? streamed(beside<const words<T, lanes>>(s.x + row * s.columns, p))
                   : words_filled<T, lanes>(0);
    C sum = 0, squares = 0;
    sums<T, lanes> v;
#pragma unroll
    for (int i = 0; i < lanes * pieces; ++i) {
        if (i % lanes == 0)
            v.set(x[i / lanes]);
        sum += v.at[i % lanes];
    }
    const C mean = row_reduce(sum, row_sum(), room) / (C)s.columns;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
        v.set(x[p]);
#pragma unroll
        for (int i = 0; i < lanes; ++i) {
            const C difference = has<lanes>(p, s.columns) ? v.at[i] - mean : 0;
            squares += difference * difference;
        }
    }
    const C inverse = inverse_of(row_reduce(squares, row_sum(), room) / (C)s.columns);
#pragma unroll
    for (int p = 0; p < pieces; ++p)
        if (has<lanes>(p, s.columns)) {
            const piece<C, lanes> gamma = *beside<const piece<C, lanes>>(s.gamma, p);
            const piece<C, lanes> beta = *beside<const piece<C, lanes>>(s.beta, p);
            v.set(x[p]);
#pragma unroll
            for (int i = 0; i < lanes; ++i)
                v.at[i] = (v.at[i] - mean) * inverse * gamma.at[i] + beta.at[i];
            *beside<words<T, lanes>>(s.y + row * s.columns, p) = v.times(1);
        }
    if (s.mean && threadIdx.x == 0) {
        s.mean[row] = mean;
        s.inverse[row] = inverse;
    }
}

/* ---- backward: blocks go through the rows, so that the sums over rows stay in registers ---- */

static const int backward_warps = 8; /* of a block */

/* Of a multiprocessor. The longer a thread's part of a row, the more registers it needs. */
template <int pieces> constexpr int backward_blocks = pieces == 4 ? 1 : pieces == 2 ? 2 : 3;

/* What a thread reads of a row: pieces of x and dy; where the row has none, dy is 0. */
template <typename T, int lanes, int pieces> struct layer_read {
    typedef typename computed<T>::type C;
    words<T, lanes> x[pieces], dy[pieces];
    C mean, inverse;

    __device__ void load(const layer<T> &s, int64_t row)
    {
        bool mine = row < s.rows;
        mean = mine ? s.mean_given[row] : 0;
        inverse = mine ? s.inverse_given[row] : 0;
#pragma unroll
        for (int p = 0; p < pieces; ++p) {
            x[p] = dy[p] = words_filled<T, lanes>(0);
            if (mine && has<lanes>(p, s.columns)) {
                x[p] = streamed(beside<const words<T, lanes>>(s.x + row * s.columns, p));
                dy[p] = streamed(beside<const words<T, lanes>>(s.dy + row * s.columns, p));
            }
        }
    }
    /* h, and dy, of piece p. */
    __device__ void normalized(int p, sums<T, lanes> *h, sums<T, lanes> *d) const
    {
        h->set(x[p]);
        d->set(dy[p]);
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            h->at[i] = (h->at[i] - mean) * inverse;
    }
};

/* The sums of two values over a group of blockDim.x threads, of which a block has blockDim.y. All of the
 * block call it together; room: what the call before last has used. */
template <typename C>
__device__ static inline void reduce_both(C *a, C *b, C (*room)[backward_warps])
{
    const int warps = blockDim.x / 32, warp = threadIdx.y * warps + threadIdx.x / 32;
#pragma unroll
    for (int other = 16; other > 0; other /= 2) {
        *a += __shfl_xor_sync(0xffffffff, *a, other);
        *b += __shfl_xor_sync(0xffffffff, *b, other);
    }
    if (warps == 1)
        return;
    if (threadIdx.x % 32 == 0) {
        room[0][warp] = *a;
        room[1][warp] = *b;
    }
    __syncthreads();
    *a = *b = 0;
    for (int i = 0; i < warps; ++i) {
        *a += room[0][threadIdx.y * warps + i];
        *b += room[1][threadIdx.y * warps + i];
    }
}

/* dx = inverse (g - sum(g) / n - h sum(g h) / n), with g = dy gamma and h = (x - mean) inverse. What the
 * next row needs is on its way meanwhile. */
template <typename T, int lanes, int pieces>
__global__ void __launch_bounds__(32 * backward_warps, backward_blocks<pieces>)
    layer_backward(layer<T> s)
{
    typedef typename computed<T>::type C;
    const int count = lanes * pieces;
    __shared__ C room[2][2][backward_warps];
    __shared__ C added[32 * backward_warps * lanes];
    const int64_t stride = (int64_t)gridDim.x * blockDim.y, all = (int64_t)blockDim.x * lanes;
    const C share = 1 / (C)s.columns;
    C dgamma[count], dbeta[count], gamma[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
        int64_t column = (int64_t)(i / lanes) * all + threadIdx.x * lanes + i % lanes;
        gamma[i] = column < s.columns ? s.gamma[column] : 0;
        dgamma[i] = dbeta[i] = 0;
    }
    layer_read<T, lanes, pieces> next;
    next.load(s, (int64_t)blockIdx.x * blockDim.y + threadIdx.y);
    int turn = 0;
#pragma unroll 1
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < s.rows; first += stride) {
        const int64_t row = first + threadIdx.y;
        const layer_read<T, lanes, pieces> read = next;
        C sum = 0, products = 0;
        next.load(s, row + stride);
#pragma unroll
        for (int p = 0; p < pieces; ++p) {
            sums<T, lanes> h, d;
            read.normalized(p, &h, &d);
#pragma unroll
            for (int i = 0; i < lanes; ++i) {
                const int at = p * lanes + i;
                sum += d.at[i] * gamma[at];
                products += d.at[i] * gamma[at] * h.at[i];
                dbeta[at] += d.at[i];
                dgamma[at] += d.at[i] * h.at[i];
            }
        }
        reduce_both(&sum, &products, room[turn]);
        turn ^= 1;
        sum *= share;
        products *= share;
#pragma unroll
        for (int p = 0; p < pieces; ++p) {
            sums<T, lanes> h, d;
            read.normalized(p, &h, &d);
#pragma unroll
            for (int i = 0; i < lanes; ++i)
                d.at[i] = d.at[i] * gamma[p * lanes + i] - sum - h.at[i] * products;
            if (row < s.rows && has<lanes>(p, s.columns))
                *beside<words<T, lanes>>(s.y + row * s.columns, p) = d.times(read.inverse);
        }
    }
    /* The groups of a block have the same columns. */
#pragma unroll
    for (int v = 0; v < 2 * pieces; ++v) {
        const C *sums = (v % 2 ? dgamma : dbeta) + v / 2 * lanes;
        const int mine = threadIdx.y * blockDim.x + threadIdx.x;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            added[mine * lanes + i] = sums[i];
        __syncthreads();
        for (int64_t i = mine; i < all; i += blockDim.x * blockDim.y) {
            int64_t column = v / 2 * all + i;
            C total = 0;
            for (unsigned y = 0; y < blockDim.y; ++y)
                total += added[y * all + i];
            if (column < s.columns)
                s.partial[((int64_t)blockIdx.x * 2 + v % 2) * s.columns + column] = total;
        }
    }
}

/* ---- longer rows: a block reads its row several times, from L2 if it is lucky ---- */

template <typename T>
__global__ void __launch_bounds__(row_threads, 1) layer_forward_long(layer<T> s)
{
    typedef typename computed<T>::type C;
    __shared__ C room[32];
    const T *x = s.x + blockIdx.x * s.columns;
    C sum = 0, squares = 0;
#pragma unroll 8
    for (int64_t i = threadIdx.x; i < s.columns; i += row_threads)
        sum += to_computed(x[i]);
    C mean = row_reduce(sum, row_sum(), room) / (C)s.columns;
#pragma unroll 8
    for (int64_t i = threadIdx.x; i < s.columns; i += row_threads) {
        C difference = to_computed(x[i]) - mean;
        squares += difference * difference;
    }
    C inverse = inverse_of(row_reduce(squares, row_sum(), room) / (C)s.columns);
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < s.columns; i += row_threads)
        s.y[blockIdx.x * s.columns + i] =
            to_stored<T>((to_computed(x[i]) - mean) * inverse * s.gamma[i] + s.beta[i]);
    if (s.mean && threadIdx.x == 0) {
        s.mean[blockIdx.x] = mean;
        s.inverse[blockIdx.x] = inverse;
    }
}

template <typename T>
__global__ void __launch_bounds__(row_threads, 1) layer_backward_long(layer<T> s)
{
    typedef typename computed<T>::type C;
    __shared__ C room[32];
    const T *x = s.x + blockIdx.x * s.columns, *dy = s.dy + blockIdx.x * s.columns;
    C mean = s.mean_given[blockIdx.x], inverse = s.inverse_given[blockIdx.x];
    C sum = 0, products = 0;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < s.columns; i += row_threads) {
        C g = (C)to_computed(dy[i]) * s.gamma[i];
        sum += g;
        products += g * ((C)to_computed(x[i]) - mean) * inverse;
    }
    sum = row_reduce(sum, row_sum(), room) / (C)s.columns;
    products = row_reduce(products, row_sum(), room) / (C)s.columns;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < s.columns; i += row_threads) {
        C h = ((C)to_computed(x[i]) - mean) * inverse;
        s.y[blockIdx.x * s.columns + i] =
            to_stored<T>(inverse * ((C)to_computed(dy[i]) * s.gamma[i] - sum - h * products));
    }
}

/* ---- launches ---- */

static cudaError_t checked(int64_t blocks)
{
    return blocks > INT_MAX ? cudaErrorInvalidValue : cudaSuccess;
}

template <typename T, int lanes> static cudaError_t forward(const layer<T> &s, cudaStream_t stream)
{
    typedef void kernel(layer<T>);
    static kernel *const kernels[3] = {layer_forward<T, lanes, 1>, layer_forward<T, lanes, 2>,
                                       layer_forward<T, lanes, 4>};
    row_shape shape = row_shape_of(s.rows, s.columns, lanes);
    if (checked(shape.blocks) != cudaSuccess)
        return checked(shape.blocks);
    if (shape.pieces > 0)
        kernels[shape.pieces / 2]<<<(unsigned)shape.blocks, shape.block, 0, stream>>>(s);
    else
        layer_forward_long<T><<<(unsigned)s.rows, row_threads, 0, stream>>>(s);
    return cudaGetLastError();
}

/* Two pieces of a row in each thread, if a block's warps suffice for that: fewer leave registers unused, and more
 * leave none to a second block. 0 pieces: no group is large enough. */
struct backward_shape {
    int warps, pieces;
};
static backward_shape backward_shape_of(int64_t columns, int lanes)
{
    int64_t needed = (columns + 32 * lanes - 1) / (32 * lanes); /* pieces of a warp's width */
    int warps = 1;
    while (warps < backward_warps && needed > 2 * warps)
        warps *= 2;
    return {warps, needed <= warps ? 1 : needed <= 2 * warps ? 2 : needed <= 4 * warps ? 4 : 0};
}

template <typename T, int lanes>
static cudaError_t backward(const layer<T> &s, int chunks, cudaStream_t stream)
{
    typedef void kernel(layer<T>);
    static kernel *const kernels[3] = {layer_backward<T, lanes, 1>, layer_backward<T, lanes, 2>,
                                       layer_backward<T, lanes, 4>};
    const backward_shape shape = backward_shape_of(s.columns, lanes);
    const dim3 block(32 * shape.warps, backward_warps / shape.warps);
    if (checked(s.rows) != cudaSuccess)
        return checked(s.rows);
    if (shape.pieces > 0)
        kernels[shape.pieces / 2]<<<(unsigned)chunks, block, 0, stream>>>(s);
    else
        layer_backward_long<T><<<(unsigned)s.rows, row_threads, 0, stream>>>(s);
    return cudaGetLastError();
}

template <typename T, int lanes>
static cudaError_t launch_lanes(const struct norm_arrays *a, cudaStream_t stream)
{
    typedef typename computed<T>::type C;
    const layer<T> s = {(T *)(a->dy ? a->dx : a->y),
                        (const T *)a->x,
                        (const T *)a->dy,
                        (const C *)a->gamma,
                        (const C *)a->beta,
                        (const C *)a->mean_given,
                        (const C *)a->inverse_given,
                        (C *)a->mean,
                        (C *)a->inverse,
                        (C *)a->partial,
                        a->rows,
                        a->columns};
    return a->dy ? backward<T, lanes>(s, a->chunks, stream) : forward<T, lanes>(s, stream);
}

/* Values in 16 bytes; 1 where a row is not made of such pieces. */
static int lanes_of(int64_t columns, size_t bytes)
{
    return columns % (16 / (int64_t)bytes) == 0 ? 16 / (int)bytes : 1;
}

template <typename T> static cudaError_t launch(const struct norm_arrays *a, cudaStream_t stream)
{
    const int whole = 16 / (int)sizeof(T);
    return lanes_of(a->columns, sizeof(T)) == whole ? launch_lanes<T, whole>(a, stream)
                                                    : launch_lanes<T, 1>(a, stream);
}

bool kernel_layer_norm_sums(enum precision precision, int64_t columns)
{
    return backward_shape_of(columns, lanes_of(columns, precision_info[precision].bytes)).pieces >
           0;
}

cudaError_t kernel_layer_norm(enum precision precision, const struct norm_arrays *arrays,
                              cudaStream_t stream)
{
    switch (precision) {
    case PRECISION_FP64:
        return launch<double>(arrays, stream);
    case PRECISION_FP32:
        return launch<float>(arrays, stream);
    case PRECISION_FP16:
        return launch<__half>(arrays, stream);
    case PRECISION_BF16:
        return launch<__nv_bfloat16>(arrays, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
