#include "kernels.h"

#include <limits.h>

#include "word.cuh"

/* Sums over the rows of a matrix, column by column, and what batch norms do with them. A block has some
 * pieces of columns beside each other; all blocks go through the rows together, so that L2 has the last of
 * them behind the kernel. Their sums go to `partial`, [blocks][2][columns], which a second kernel adds up. */
static const int threads = 256;

/* Of one element, the two values whose sums are wanted. */
enum norm_sums { MOMENTS, BATCH_GRADIENTS, LAYER_GRADIENTS };

template <typename T> struct columns_of {
    typedef typename computed<T>::type C;
    const T *x, *dy;
    const C *gamma, *beta, *mean, *inverse;
    int64_t rows, columns;
};

/* Moments are of differences from the first row, so that a large mean takes nothing from the variance.
 * Gradients are of dy h and dy; inverse of a batch norm is the same for all rows, and comes later. */
template <enum norm_sums what, typename T, int lanes>
__global__ void __launch_bounds__(threads, 3)
    norm_sum(typename computed<T>::type *partial, columns_of<T> s)
{
    typedef typename computed<T>::type C;
    /* Rows whose loads are in flight together: as many as there are registers for. */
    const int loads = what == MOMENTS ? (sizeof(T) == 4 ? 6 : 8) : what == BATCH_GRADIENTS ? 4 : 2;
    __shared__ C room[2][threads * lanes];
    const int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * lanes;
    const int64_t each = loads * (int64_t)blockDim.y, stride = gridDim.y * each;
    const int64_t rows = column < s.columns ? s.rows : 0;
    C first[lanes], second[lanes], origin[lanes];
#pragma unroll
    for (int i = 0; i < lanes; ++i) {
        first[i] = second[i] = origin[i] = 0;
        if (rows > 0)
            origin[i] = what == MOMENTS           ? (C)to_computed(s.x[column + i])
                        : what == BATCH_GRADIENTS ? s.mean[column + i]
                                                  : 0;
    }
#pragma unroll 1
    for (int64_t row = blockIdx.y * each + threadIdx.y; row < rows; row += stride) {
        words<T, lanes> x[loads], dy[loads];
#pragma unroll
        for (int j = 0; j < loads; ++j) {
            const int64_t other = row + j * (int)blockDim.y;
            if (other < rows) {
                x[j] = streamed((const words<T, lanes> *)(s.x + other * s.columns + column));
                if (what != MOMENTS)
                    dy[j] = streamed((const words<T, lanes> *)(s.dy + other * s.columns + column));
            }
        }
#pragma unroll
        for (int j = 0; j < loads; ++j) {
            const int64_t other = row + j * (int)blockDim.y;
            if (other >= rows)
                break;
            C mean = what == LAYER_GRADIENTS ? s.mean[other] : 0;
            C inverse = what == LAYER_GRADIENTS ? s.inverse[other] : 1;
            sums<T, lanes> values, given;
            values.set(x[j]);
            if (what != MOMENTS)
                given.set(dy[j]);
#pragma unroll
            for (int i = 0; i < lanes; ++i) {
                C difference = values.at[i] - origin[i];
                C d = what == MOMENTS ? difference : given.at[i];
                if (what == LAYER_GRADIENTS)
                    difference = (difference - mean) * inverse;
                first[i] += d;
                second[i] += d * difference;
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

/* ---- the blocks' sums added up ---- */

static const int unite_columns = 8, unite_rows = 64;

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
    for (int rows = unite_rows / 2; rows > 0; rows /= 2) {
        for (int i = 0; i < 2; ++i)
            room[i][threadIdx.y][threadIdx.x] = sums[i];
        __syncthreads();
        if ((int)threadIdx.y < rows)
            for (int i = 0; i < 2; ++i)
                sums[i] += room[i][threadIdx.y + rows][threadIdx.x];
        __syncthreads();
    }
    *first = sums[0];
    *second = sums[1];
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

/* y = scale x + shift, or dx = scale x + other dy + shift, with the same factors in all rows, which a block
 * keeps in shared memory. The last rows come first: the kernel before has read them last, and L2 still has
 * them. */
template <bool gradient>
constexpr int apply_rows = gradient ? 2 : 4; /* of a thread, all in flight */

template <bool gradient, typename T, int lanes>
__global__ void __launch_bounds__(threads, 3)
    norm_apply(T *y, columns_of<T> s, const typename computed<T>::type *dgamma,
               const typename computed<T>::type *dbeta, unsigned beside)
{
    typedef typename computed<T>::type C;
    const int each = apply_rows<gradient>;
    __shared__ alignas(32) C scale[32 * lanes], shift[32 * lanes], other[32 * lanes];
    const unsigned block = gridDim.x - 1 - blockIdx.x;
    const int64_t begin = (int64_t)(block % beside) * blockDim.x * lanes;
    const int64_t column = begin + threadIdx.x * lanes;
    const int64_t first = (int64_t)(block / beside) * blockDim.y * each + threadIdx.y;
    const C share = 1 / (C)s.rows;
    words<T, lanes> x[each], dy[each];
    bool mine[each];
#pragma unroll
    for (int j = 0; j < each; ++j) {
        const int64_t row = first + j * (int)blockDim.y;
        mine[j] = row < s.rows && column < s.columns;
        if (mine[j]) {
            x[j] = streamed((const words<T, lanes> *)(s.x + row * s.columns + column));
            if (gradient)
                dy[j] = streamed((const words<T, lanes> *)(s.dy + row * s.columns + column));
        }
    }
#pragma unroll 1
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < (int)blockDim.x * lanes; i += threads)
        if (begin + i < s.columns) {
            const int64_t c = begin + i;
            const C a = s.gamma[c] * s.inverse[c];
            other[i] = a;
            scale[i] = gradient ? -a * s.inverse[c] * dgamma[c] * share : a;
            shift[i] =
                gradient ? -a * dbeta[c] * share - scale[i] * s.mean[c] : s.beta[c] - s.mean[c] * a;
        }
    __syncthreads();
    const piece<C, lanes> factor = ((const piece<C, lanes> *)scale)[threadIdx.x],
                          constant = ((const piece<C, lanes> *)shift)[threadIdx.x],
                          of_dy = ((const piece<C, lanes> *)other)[threadIdx.x];
#pragma unroll
    for (int j = 0; j < each; ++j) {
        sums<T, lanes> value, given;
        value.set(x[j]);
        if (gradient)
            given.set(dy[j]);
#pragma unroll
        for (int i = 0; i < lanes; ++i) {
            value.at[i] = factor.at[i] * value.at[i] + constant.at[i];
            if (gradient)
                value.at[i] += of_dy.at[i] * given.at[i];
        }
        if (mine[j])
            ((words<T, lanes> *)(y + (first + j * (int)blockDim.y) * s.columns + column))[0] =
                value.times(1);
    }
}

/* ---- launches ---- */

struct columns_shape {
    unsigned beside; /* blocks */
    dim3 block;
};

static columns_shape shape_of(int64_t columns, int lanes)
{
    int64_t pieces = columns / lanes;
    unsigned width = 32;
    while (width > 1 && width / 2 >= pieces)
        width /= 2;
    return {(unsigned)((pieces + width - 1) / width), dim3(width, threads / width)};
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
    typedef void kernel(C *, columns_of<T>);
    static kernel *const kernels[3] = {norm_sum<MOMENTS, T, lanes>,
                                       norm_sum<BATCH_GRADIENTS, T, lanes>,
                                       norm_sum<LAYER_GRADIENTS, T, lanes>};
    const columns_shape shape = shape_of(a->columns, lanes);
    kernels[what]<<<dim3(shape.beside, (unsigned)a->chunks), shape.block, 0, stream>>>(
        (C *)a->partial, columns_make<T>(a));
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
    bool gradient = a->dy != NULL;
    const columns_shape shape = shape_of(a->columns, lanes);
    int64_t each = (int64_t)shape.block.y * (gradient ? apply_rows<true> : apply_rows<false>);
    int64_t blocks = (a->rows + each - 1) / each * shape.beside;
    if (blocks > INT_MAX)
        return cudaErrorInvalidValue;
    auto *kernel = gradient ? norm_apply<true, T, lanes> : norm_apply<false, T, lanes>;
    kernel<<<(unsigned)blocks, shape.block, 0, stream>>>((T *)(gradient ? a->dx : a->y),
                                                         columns_make<T>(a), (const C *)a->dgamma,
                                                         (const C *)a->dbeta, shape.beside);
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
