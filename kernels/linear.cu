#include "kernels.h"

#include "element.cuh"
#include "piece.cuh"

/* ---- a product, one thread for each element, as one would first write it ---- */

static const int block_columns = 32, block_rows = 8;

template <typename T>
__global__ void __launch_bounds__(block_columns *block_rows)
    strided_product(T *c, struct kernel_factor a, struct kernel_factor b, int64_t m, int64_t n,
                    int64_t k, unsigned row_blocks)
{
    typedef typename computed<T>::type sum_type;
    int64_t column = (int64_t)(blockIdx.x % row_blocks) * block_columns + threadIdx.x;
    int64_t row = (int64_t)(blockIdx.x / row_blocks) * block_rows + threadIdx.y;
    if (row >= m || column >= n)
        return;
    const T *x = (const T *)a.data + row * a.line, *w = (const T *)b.data + column * b.line;
    sum_type sum = 0;
    for (int64_t i = 0; i < k; ++i)
        sum = fma(to_computed(x[i * a.step]), to_computed(w[i * b.step]), sum);
    c[row * n + column] = to_stored<T>(sum);
}

template <typename T>
static cudaError_t launch_product(void *c, struct kernel_factor a, struct kernel_factor b,
                                  int64_t m, int64_t n, int64_t k, cudaStream_t stream)
{
    int64_t row_blocks = (n + block_columns - 1) / block_columns;
    int64_t blocks = row_blocks * ((m + block_rows - 1) / block_rows);
    if (blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    strided_product<T><<<(unsigned)blocks, dim3(block_columns, block_rows), 0, stream>>>(
        (T *)c, a, b, m, n, k, (unsigned)row_blocks);
    return cudaGetLastError();
}

cudaError_t kernel_linear_product(enum precision precision, void *c, struct kernel_factor a,
                                  struct kernel_factor b, int64_t m, int64_t n, int64_t k,
                                  cudaStream_t stream)
{
    switch (precision) {
    case PRECISION_FP64:
        return launch_product<double>(c, a, b, m, n, k, stream);
    case PRECISION_FP32:
        return launch_product<float>(c, a, b, m, n, k, stream);
    case PRECISION_FP16:
        return launch_product<__half>(c, a, b, m, n, k, stream);
    case PRECISION_BF16:
        return launch_product<__nv_bfloat16>(c, a, b, m, n, k, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

/* ---- bias and activation ----
 *
 * A thread takes 16 bytes of a row, where rows are of whole pieces; otherwise one element. */

__device__ static inline double hyperbolic_tangent(double x)
{
    return tanh(x);
}
__device__ static inline float hyperbolic_tangent(float x)
{
    return tanhf(x);
}

template <typename S> __device__ static inline S activate(enum linear_activation activation, S x)
{
    if (activation == LINEAR_RELU)
        return x > 0 ? x : 0;
    if (activation == LINEAR_GELU)
        return (S)0.5 * x *
               (1 +
                hyperbolic_tangent((S)LINEAR_GELU_SCALE * (x + (S)LINEAR_GELU_CUBIC * x * x * x)));
    return x;
}

/* Division of 64 bits takes many instructions, and is seldom needed. */
__device__ static inline int64_t column_of(int64_t index, int64_t columns)
{
    return index <= UINT32_MAX ? (uint32_t)index % (uint32_t)columns : index % columns;
}

template <typename T, int width>
__global__ void __launch_bounds__(element_threads)
    finish(piece<T, width> *y, const piece<T, width> *bias, enum linear_activation activation,
           int64_t pieces, int64_t row_pieces)
{
    typedef typename computed<T>::type sum_type;
    int64_t step = (int64_t)gridDim.x * element_threads;
    for (int64_t i = (int64_t)blockIdx.x * element_threads + threadIdx.x; i < pieces; i += step) {
        piece<T, width> value = y[i], added;
        if (bias)
            added = bias[column_of(i, row_pieces)];
#pragma unroll
        for (int j = 0; j < width; ++j) {
            sum_type x = to_computed(value.at[j]);
            if (bias)
                x += to_computed(added.at[j]);
            value.at[j] = to_stored<T>(activate(activation, x));
        }
        y[i] = value;
    }
}

template <typename T>
static cudaError_t launch_finish(void *y, const void *bias, enum linear_activation activation,
                                 int64_t rows, int64_t columns, cudaStream_t stream)
{
    const int width = 16 / sizeof(T);
    int64_t elements = rows * columns;
    if (columns % width == 0)
        finish<T, width><<<element_blocks(elements / width), element_threads, 0, stream>>>(
            (piece<T, width> *)y, (const piece<T, width> *)bias, activation, elements / width,
            columns / width);
    else
        finish<T, 1><<<element_blocks(elements), element_threads, 0, stream>>>(
            (piece<T, 1> *)y, (const piece<T, 1> *)bias, activation, elements, columns);
    return cudaGetLastError();
}

cudaError_t kernel_linear_finish(enum precision precision, void *y, const void *bias,
                                 enum linear_activation activation, int64_t rows, int64_t columns,
                                 cudaStream_t stream)
{
    switch (precision) {
    case PRECISION_FP64:
        return launch_finish<double>(y, bias, activation, rows, columns, stream);
    case PRECISION_FP32:
    case PRECISION_TF32:
        return launch_finish<float>(y, bias, activation, rows, columns, stream);
    case PRECISION_FP16:
        return launch_finish<__half>(y, bias, activation, rows, columns, stream);
    case PRECISION_BF16:
        return launch_finish<__nv_bfloat16>(y, bias, activation, rows, columns, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

/* ---- sums of columns ----
 *
 * A block sums 32 neighbouring columns, each with 32 threads, which take the rows in turn. */
static const int sum_columns = 32, sum_rows = 32;

template <typename T>
__global__ void __launch_bounds__(sum_columns *sum_rows)
    column_sums(T *sums, const T *data, int64_t rows, int64_t columns)
{
    typedef typename computed<T>::type sum_type;
    __shared__ sum_type parts[sum_rows][sum_columns + 1];
    int64_t column = (int64_t)blockIdx.x * sum_columns + threadIdx.x;
    sum_type sum = 0;
    if (column < columns)
        for (int64_t row = threadIdx.y; row < rows; row += sum_rows)
            sum += to_computed(data[row * columns + column]);
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= columns)
        return;
    for (int i = 1; i < sum_rows; ++i)
        sum += parts[i][threadIdx.x];
    sums[column] = to_stored<T>(sum);
}

template <typename T>
static cudaError_t launch_sums(void *sums, const void *data, int64_t rows, int64_t columns,
                               cudaStream_t stream)
{
    unsigned blocks = (unsigned)((columns + sum_columns - 1) / sum_columns);
    column_sums<T><<<blocks, dim3(sum_columns, sum_rows), 0, stream>>>((T *)sums, (const T *)data,
                                                                       rows, columns);
    return cudaGetLastError();
}

cudaError_t kernel_column_sums(enum precision precision, void *sums, const void *data, int64_t rows,
                               int64_t columns, cudaStream_t stream)
{
    switch (precision) {
    case PRECISION_FP64:
        return launch_sums<double>(sums, data, rows, columns, stream);
    case PRECISION_FP32:
    case PRECISION_TF32:
        return launch_sums<float>(sums, data, rows, columns, stream);
    case PRECISION_FP16:
        return launch_sums<__half>(sums, data, rows, columns, stream);
    case PRECISION_BF16:
        return launch_sums<__nv_bfloat16>(sums, data, rows, columns, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
