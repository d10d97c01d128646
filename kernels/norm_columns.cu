#include "kernels.h"

#include <limits.h>

#include "piece.cuh"

/* Sums over the rows of a matrix, column by column, and what batch norms do with them. A block has some
 * pieces of columns beside each other and a chunk of the rows; its sums of the chunk go to `partial`,
 * [chunks][2][columns], which a second kernel adds up. */
static const int threads = 256;

/* Of one element, the two values whose sums are wanted. */
enum norm_sums { MOMENTS, BATCH_GRADIENTS, LAYER_GRADIENTS };

template <typename T> struct columns_of {
    typedef typename computed<T>::type C;
    const T *x, *dy;
    const C *gamma, *beta, *mean, *inverse;
    int64_t rows, columns;
};

/* From this column on, of an array with a value for each. */
template <int lanes, typename C>
__device__ static inline piece<C, lanes> beside(const C *parameters, int64_t column)
{
    return ((const piece<C, lanes> *)parameters)[column / lanes];
}

/* Moments are of differences from the first row, so that a large mean takes nothing from the variance.
 * Gradients are of dy h and dy; inverse of a batch norm is the same for all rows, and comes later. */
template <enum norm_sums what, typename T, int lanes>
__global__ void __launch_bounds__(threads, 3)
    norm_sum(typename computed<T>::type *partial, columns_of<T> s, int64_t chunk)
{
    typedef typename computed<T>::type C;
    __shared__ C room[2][threads * lanes];
    int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * lanes;
    int64_t last = min((int64_t)(blockIdx.y + 1) * chunk, s.rows);
    C first[lanes], second[lanes], origin[lanes];
#pragma unroll
    for (int i = 0; i < lanes; ++i)
        first[i] = second[i] = origin[i] = 0;
    if (column < s.columns) {
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            origin[i] = what == MOMENTS           ? (C)to_computed(s.x[column + i])
                        : what == BATCH_GRADIENTS ? s.mean[column + i]
                                                  : 0;
#pragma unroll 4
        for (int64_t row = (int64_t)blockIdx.y * chunk + threadIdx.y; row < last;
             row += blockDim.y) {
            int64_t at = (row * s.columns + column) / lanes;
            piece<T, lanes> x = ((const piece<T, lanes> *)s.x)[at], dy = {};
            C mean = 0, inverse = 1;
            if (what != MOMENTS)
                dy = ((const piece<T, lanes> *)s.dy)[at];
            if (what == LAYER_GRADIENTS) {
                mean = s.mean[row];
                inverse = s.inverse[row];
            }
#pragma unroll
            for (int i = 0; i < lanes; ++i) {
                C difference = (C)to_computed(x.at[i]) - origin[i], d = to_computed(dy.at[i]);
                if (what == LAYER_GRADIENTS)
                    difference = (difference - mean) * inverse;
                first[i] += what == MOMENTS ? difference : d;
                second[i] += (what == MOMENTS ? difference : d) * difference;
            }
        }
    }
    int mine = (threadIdx.y * blockDim.x + threadIdx.x) * lanes, width = blockDim.x * lanes;
#pragma unroll
    for (int i = 0; i < lanes; ++i) {
        room[0][mine + i] = first[i];
        room[1][mine + i] = second[i];
    }
    __syncthreads();
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < 2 * width; i += threads) {
        int64_t to = (int64_t)blockIdx.x * width + i % width;
        C sum = 0;
        for (int y = 0; y < (int)blockDim.y; ++y)
            sum += room[i / width][y * width + i % width];
        if (to < s.columns)
            partial[((int64_t)blockIdx.y * 2 + i / width) * s.columns + to] = sum;
    }
}

/* ---- the chunks' sums added up ---- */

static const int unite_columns = 32, unite_rows = 16;

/* Of column `column`, in the threads whose y is 0. */
template <typename C>
__device__ static inline void unite(const C *partial, int64_t column, int64_t columns, int chunks,
                                    C *first, C *second)
{
    __shared__ C room[2][unite_rows][unite_columns];
    C sums[2] = {0, 0};
    if (column < columns)
#pragma unroll 4
        for (int chunk = threadIdx.y; chunk < chunks; chunk += unite_rows)
            for (int i = 0; i < 2; ++i)
                sums[i] += partial[((int64_t)chunk * 2 + i) * columns + column];
    for (int i = 0; i < 2; ++i)
        room[i][threadIdx.y][threadIdx.x] = sums[i];
    __syncthreads();
    *first = *second = 0;
    for (int y = 0; y < unite_rows; ++y) {
        *first += room[0][y][threadIdx.x];
        *second += room[1][y][threadIdx.x];
    }
}

template <typename T>
__global__ void __launch_bounds__(unite_columns *unite_rows)
    norm_moments(typename computed<T>::type *mean, typename computed<T>::type *variance,
                 typename computed<T>::type *inverse, const typename computed<T>::type *partial,
                 const T *x, int64_t rows, int64_t columns, int chunks)
{
    typedef typename computed<T>::type C;
    int64_t column = (int64_t)blockIdx.x * unite_columns + threadIdx.x;
    C first, second;
    unite(partial, column, columns, chunks, &first, &second);
    if (threadIdx.y > 0 || column >= columns)
        return;
    C shift = first / (C)rows, spread = second / (C)rows - shift * shift;
    mean[column] = (C)to_computed(x[column]) + shift;
    inverse[column] = rsqrt(spread + (C)NORM_EPSILON);
    if (variance)
        variance[column] = spread;
}

/* inverse: of a batch norm; NULL: it is in the sums already. */
template <typename C>
__global__ void __launch_bounds__(unite_columns *unite_rows)
    norm_gradients(C *dgamma, C *dbeta, const C *partial, const C *inverse, int64_t columns,
                   int chunks)
{
    int64_t column = (int64_t)blockIdx.x * unite_columns + threadIdx.x;
    C first, second;
    unite(partial, column, columns, chunks, &first, &second);
    if (threadIdx.y > 0 || column >= columns)
        return;
    dbeta[column] = first;
    dgamma[column] = inverse ? second * inverse[column] : second;
}

/* ---- batch norms, element by element ---- */

/* A thread's columns are the same in all of its rows, so what is known of them stays in registers:
 * y = scale x + shift, or dx = scale x + other dy + shift. The last rows come first: the kernel before has
 * read them last, and L2 still has them. */
template <bool gradient, typename T, int lanes>
__global__ void __launch_bounds__(threads)
    norm_apply(T *y, columns_of<T> s, const typename computed<T>::type *dgamma,
               const typename computed<T>::type *dbeta, int64_t chunk)
{
    typedef typename computed<T>::type C;
    int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * lanes;
    int64_t first = (int64_t)(gridDim.y - 1 - blockIdx.y) * chunk,
            last = min(first + chunk, s.rows);
    C scale[lanes], shift[lanes], other[lanes];
    if (column >= s.columns)
        return;
    piece<C, lanes> gamma = beside<lanes>(s.gamma, column), mean = beside<lanes>(s.mean, column),
                    inverse = beside<lanes>(s.inverse, column), beta = {}, products = {}, sums = {};
    if (gradient) {
        products = beside<lanes>(dgamma, column);
        sums = beside<lanes>(dbeta, column);
    } else {
        beta = beside<lanes>(s.beta, column);
    }
#pragma unroll
    for (int i = 0; i < lanes; ++i) {
        C a = gamma.at[i] * inverse.at[i], n = (C)s.rows;
        other[i] = a;
        scale[i] = gradient ? -a * inverse.at[i] * products.at[i] / n : a;
        shift[i] =
            gradient ? -a * sums.at[i] / n - scale[i] * mean.at[i] : beta.at[i] - mean.at[i] * a;
    }
#pragma unroll 4
    for (int64_t row = first + threadIdx.y; row < last; row += blockDim.y) {
        int64_t at = (row * s.columns + column) / lanes;
        piece<T, lanes> x = ((const piece<T, lanes> *)s.x)[at], dy = {};
        if (gradient)
            dy = ((const piece<T, lanes> *)s.dy)[at];
#pragma unroll
        for (int i = 0; i < lanes; ++i) {
            C value = scale[i] * (C)to_computed(x.at[i]) + shift[i];
            if (gradient)
                value += other[i] * (C)to_computed(dy.at[i]);
            x.at[i] = to_stored<T>(value);
        }
        ((piece<T, lanes> *)y)[at] = x;
    }
}

/* ---- launches ---- */

struct columns_shape {
    dim3 grid, block;
    int64_t chunk; /* rows of a block */
};

/* So many blocks behind each other. */
static columns_shape shape_of(int64_t rows, int64_t columns, int lanes, int64_t chunks)
{
    int64_t pieces = columns / lanes;
    unsigned width = 32;
    while (width > 1 && width / 2 >= pieces)
        width /= 2;
    return {dim3((unsigned)((pieces + width - 1) / width), (unsigned)chunks),
            dim3(width, threads / width), (rows + chunks - 1) / chunks};
}

template <typename T> static columns_of<T> columns_make(const struct norm_arrays *a)
{
    typedef typename computed<T>::type C;
    return {(const T *)a->x,
            (const T *)a->dy,
            (const C *)a->gamma,
            (const C *)a->beta,
            (const C *)a->mean_given,
            (const C *)a->inverse_given,
            a->rows,
            a->columns};
}

template <typename T, int lanes>
static cudaError_t sum(int what, const struct norm_arrays *a, cudaStream_t stream)
{
    typedef typename computed<T>::type C;
    typedef void kernel(C *, columns_of<T>, int64_t);
    static kernel *const kernels[3] = {norm_sum<MOMENTS, T, lanes>,
                                       norm_sum<BATCH_GRADIENTS, T, lanes>,
                                       norm_sum<LAYER_GRADIENTS, T, lanes>};
    columns_shape shape = shape_of(a->rows, a->columns, lanes, a->chunks);
    kernels[what]<<<shape.grid, shape.block, 0, stream>>>((C *)a->partial, columns_make<T>(a),
                                                          shape.chunk);
    return cudaGetLastError();
}

static dim3 unite_grid(const struct norm_arrays *a)
{
    return dim3((unsigned)((a->columns + unite_columns - 1) / unite_columns));
}

template <typename T> static cudaError_t moments(const struct norm_arrays *a, cudaStream_t stream)
{
    typedef typename computed<T>::type C;
    norm_moments<T><<<unite_grid(a), dim3(unite_columns, unite_rows), 0, stream>>>(
        (C *)a->mean, (C *)a->variance, (C *)a->inverse, (const C *)a->partial, (const T *)a->x,
        a->rows, a->columns, a->chunks);
    return cudaGetLastError();
}

template <typename T>
static cudaError_t gradients(bool batch, const struct norm_arrays *a, cudaStream_t stream)
{
    typedef typename computed<T>::type C;
    norm_gradients<C><<<unite_grid(a), dim3(unite_columns, unite_rows), 0, stream>>>(
        (C *)a->dgamma, (C *)a->dbeta, (const C *)a->partial,
        batch ? (const C *)a->inverse_given : NULL, a->columns, a->chunks);
    return cudaGetLastError();
}

template <typename T, int lanes>
static cudaError_t apply(const struct norm_arrays *a, cudaStream_t stream)
{
    typedef typename computed<T>::type C;
    const int64_t most = 4096, least = 128; /* rows, which share what is known of their columns */
    bool gradient = a->dy != NULL;
    int64_t chunks = (a->rows + least - 1) / least;
    columns_shape shape = shape_of(a->rows, a->columns, lanes, chunks < most ? chunks : most);
    auto *kernel = gradient ? norm_apply<true, T, lanes> : norm_apply<false, T, lanes>;
    kernel<<<shape.grid, shape.block, 0, stream>>>((T *)(gradient ? a->dx : a->y),
                                                   columns_make<T>(a), (const C *)a->dgamma,
                                                   (const C *)a->dbeta, shape.chunk);
    return cudaGetLastError();
}

/* What norm_step says, in this order. */
template <typename T>
static cudaError_t step_run(enum norm_step step, const struct norm_arrays *a, cudaStream_t stream)
{
    const int whole = 16 / (int)sizeof(T);
    bool pieces = a->columns % whole == 0;
    if (step == NORM_STEP_MOMENTS)
        return moments<T>(a, stream);
    if (step == NORM_STEP_BATCH_GRADIENTS || step == NORM_STEP_LAYER_GRADIENTS)
        return gradients<T>(step == NORM_STEP_BATCH_GRADIENTS, a, stream);
    if (step == NORM_STEP_APPLY)
        return pieces ? apply<T, whole>(a, stream) : apply<T, 1>(a, stream);
    int what = (int)step - (int)NORM_STEP_SUM_MOMENTS;
    return pieces ? sum<T, whole>(what, a, stream) : sum<T, 1>(what, a, stream);
}

cudaError_t kernel_norm_step(enum precision precision, enum norm_step step,
                             const struct norm_arrays *arrays, cudaStream_t stream)
{
    switch (precision) {
    case PRECISION_FP64:
        return step_run<double>(step, arrays, stream);
    case PRECISION_FP32:
        return step_run<float>(step, arrays, stream);
    case PRECISION_FP16:
        return step_run<__half>(step, arrays, stream);
    case PRECISION_BF16:
        return step_run<__nv_bfloat16>(step, arrays, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
