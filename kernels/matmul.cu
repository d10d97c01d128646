#include "kernels.h"

#include "piece.cuh"

/* The straightforward product. A warp lies along a row of y: its lanes read neighbours of w, and all
 * of them the same value of x. The caches do the rest. */
static const int block_columns = 32, block_rows = 8;

/* The blocks are counted along a row of y first. */
template <typename T>
__global__ void __launch_bounds__(block_columns *block_rows)
    matmul(T *y, const T *x, const T *w, int64_t m, int64_t n, int64_t k, unsigned row_blocks)
{
    int64_t column = (int64_t)(blockIdx.x % row_blocks) * block_columns + threadIdx.x;
    int64_t row = (int64_t)(blockIdx.x / row_blocks) * block_rows + threadIdx.y;
    if (row >= m || column >= n)
        return;
    typename computed<T>::type sum = 0;
    x += row * k;
    w += column;
    for (const T *end = x + k; x != end; ++x, w += n)
        sum = fma(to_computed(*x), to_computed(*w), sum);
    y[row * n + column] = to_stored<T>(sum);
}

template <typename T>
static cudaError_t launch(void *y, const void *x, const void *w, int64_t m, int64_t n, int64_t k,
                          cudaStream_t stream)
{
    int64_t row_blocks = (n + block_columns - 1) / block_columns;
    int64_t blocks = row_blocks * ((m + block_rows - 1) / block_rows);
    if (blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    matmul<T><<<(unsigned)blocks, dim3(block_columns, block_rows), 0, stream>>>(
        (T *)y, (const T *)x, (const T *)w, m, n, k, (unsigned)row_blocks);
    return cudaGetLastError();
}

cudaError_t kernel_matmul(enum precision precision, void *y, const void *x, const void *w,
                          int64_t m, int64_t n, int64_t k, cudaStream_t stream)
{
    switch (precision) {
    case PRECISION_FP64:
        return launch<double>(y, x, w, m, n, k, stream);
    case PRECISION_FP32:
        return launch<float>(y, x, w, m, n, k, stream);
    case PRECISION_FP16:
        return launch<__half>(y, x, w, m, n, k, stream);
    case PRECISION_BF16:
        return launch<__nv_bfloat16>(y, x, w, m, n, k, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
