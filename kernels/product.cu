#include "kernels.h"

#include "activation.cuh"
#include "element.cuh"

/* ---- a product, one thread for each element ----
 *
 * The lanes of a warp compute neighbouring elements of a row of c. They read the same element of
 * the first factor, and neighbouring elements of the second factor if its lines are one element
 * apart. Only the caches reuse data. */

static const int block_columns = 32, block_rows = 8;

template <typename T>
__global__ void __launch_bounds__(block_columns *block_rows)
    product(T *c, struct kernel_factor a, struct kernel_factor b, int64_t m, int64_t n, int64_t k,
            unsigned row_blocks)
{
    int64_t column = (int64_t)(blockIdx.x % row_blocks) * block_columns + threadIdx.x;
    int64_t row = (int64_t)(blockIdx.x / row_blocks) * block_rows + threadIdx.y;
    if (row >= m || column >= n)
        return;
    const T *x = (const T *)a.data + row * a.line, *w = (const T *)b.data + column * b.line;
    int64_t i = 0;
    auto part = [&](int64_t end) {
        typename computed<T>::type sum = 0;
        for (; i < end; ++i, x += a.step, w += b.step)
            sum = fma(to_computed(*x), to_computed(*w), sum);
        return sum;
    };
    /* Partial sums, as in long_sum. The first one starts the total instead of being added to 0, so
     * a short product does only the modelled operations. */
    typename computed<T>::type sum = part(min((int64_t)1024, k));
    while (i < k)
        sum += part(min(i + 1024, k));
    c[row * n + column] = to_stored<T>(sum);
}

cudaError_t kernel_product(enum precision precision, void *c, struct kernel_factor a,
                           struct kernel_factor b, int64_t m, int64_t n, int64_t k,
                           cudaStream_t stream)
{
    const int64_t row_blocks = (n + block_columns - 1) / block_columns;
    const int64_t blocks = row_blocks * ((m + block_rows - 1) / block_rows);
    if (blocks > INT32_MAX || precision == PRECISION_TF32)
        return cudaErrorInvalidValue;
    return by_precision(precision, [&](auto element) {
        typedef decltype(element) T;
        product<T><<<(unsigned)blocks, dim3(block_columns, block_rows), 0, stream>>>(
            (T *)c, a, b, m, n, k, (unsigned)row_blocks);
    });
}

/* ---- bias and activation ---- */

template <typename S> __device__ static inline S activate(enum linear_activation activation, S x)
{
    if (activation == LINEAR_RELU)
        return x > 0 ? x : 0;
    if (activation == LINEAR_GELU)
        return (S)0.5 * x *
               (1 + tanh((S)LINEAR_GELU_SCALE * (x + (S)LINEAR_GELU_CUBIC * x * x * x)));
    return x;
}

template <typename T>
__global__ void __launch_bounds__(element_threads)
    finish(T *y, const T *bias, enum linear_activation activation, int64_t columns, int64_t count)
{
    typedef typename computed<T>::type C;
    for (int64_t i = first_element(); i < count; i += next_element()) {
        C x = to_computed(y[i]);
        if (bias)
            x += (C)to_computed(bias[i % columns]);
        y[i] = to_stored<T>(activate(activation, x));
    }
}

cudaError_t kernel_linear_finish(enum precision precision, void *y, const void *bias,
                                 enum linear_activation activation, int64_t rows, int64_t columns,
                                 cudaStream_t stream)
{
    return by_precision(precision, [&](auto element) {
        typedef decltype(element) T;
        finish<T><<<element_blocks(rows * columns), element_threads, 0, stream>>>(
            (T *)y, (const T *)bias, activation, columns, rows * columns);
    });
}

/* ---- sums of columns ----
 *
 * A block sums 32 neighbouring columns, each with 32 threads that take the rows in turn. */
static const int sum_columns = 32, sum_rows = 32;

template <typename T>
__global__ void __launch_bounds__(sum_columns *sum_rows)
    column_sums(T *sums, const T *data, int64_t rows, int64_t columns)
{
    typedef typename computed<T>::type C;
    __shared__ C parts[sum_rows][sum_columns];
    int64_t column = (int64_t)blockIdx.x * sum_columns + threadIdx.x;
    long_sum<C> own;
    if (column < columns)
        for (int64_t row = threadIdx.y; row < rows; row += sum_rows)
            own.add(to_computed(data[row * columns + column]));
    C sum = own.value();
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= columns)
        return;
    for (int i = 1; i < sum_rows; ++i)
        sum += parts[i][threadIdx.x];
    sums[column] = to_stored<T>(sum);
}

cudaError_t kernel_column_sums(enum precision precision, void *sums, const void *data, int64_t rows,
                               int64_t columns, cudaStream_t stream)
{
    const unsigned blocks = (unsigned)((columns + sum_columns - 1) / sum_columns);
    return by_precision(precision, [&](auto element) {
        typedef decltype(element) T;
        column_sums<T><<<blocks, dim3(sum_columns, sum_rows), 0, stream>>>(
            (T *)sums, (const T *)data, rows, columns);
    });
}
