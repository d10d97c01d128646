#include "kernels.h"

#include "activation.cuh"
#include "block.cuh"
#include "element.cuh"

/* A block computes the softmax of a row. It reads the row three times, or twice in the backward
 * pass. */

/* y may be x. */
template <typename T>
__global__ void __launch_bounds__(row_threads)
    softmax_forward(T *y, const T *x, int64_t rows, int64_t columns, int64_t sequence)
{
    typedef typename computed<T>::type C;
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const int64_t seen = sequence > 0 ? min(row % sequence + 1, columns) : columns;
        const T *from = x + row * columns;
        C largest = -INFINITY;
        long_sum<C> sums;
        for (int64_t i = threadIdx.x; i < seen; i += row_threads)
            largest = larger()(largest, (C)to_computed(from[i]));
        largest = block_reduce(largest, larger());
        for (int64_t i = threadIdx.x; i < seen; i += row_threads)
            sums.add(exp((C)to_computed(from[i]) - largest));
        const C sum = block_reduce(sums.value(), added());
        for (int64_t i = threadIdx.x; i < columns; i += row_threads)
            y[row * columns + i] =
                to_stored<T>(i < seen ? exp((C)to_computed(from[i]) - largest) / sum : (C)0);
    }
}

template <typename T>
__global__ void __launch_bounds__(row_threads)
    softmax_backward(T *dx, const T *y, const T *dy, int64_t rows, int64_t columns)
{
    typedef typename computed<T>::type C;
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const int64_t first = row * columns;
        long_sum<C> sums;
        for (int64_t i = first + threadIdx.x; i < first + columns; i += row_threads)
            sums.add((C)to_computed(y[i]) * (C)to_computed(dy[i]));
        const C sum = block_reduce(sums.value(), added());
        for (int64_t i = first + threadIdx.x; i < first + columns; i += row_threads)
            dx[i] = to_stored<T>((C)to_computed(y[i]) * ((C)to_computed(dy[i]) - sum));
    }
}

cudaError_t kernel_softmax(enum precision precision, void *y, const void *x, int64_t rows,
                           int64_t columns, int64_t sequence, cudaStream_t stream)
{
    return by_precision(precision, [&](auto element) {
        typedef decltype(element) T;
        softmax_forward<T><<<row_blocks(rows), row_threads, 0, stream>>>((T *)y, (const T *)x, rows,
                                                                         columns, sequence);
    });
}

cudaError_t kernel_softmax_gradient(enum precision precision, void *dx, const void *y,
                                    const void *dy, int64_t rows, int64_t columns,
                                    cudaStream_t stream)
{
    return by_precision(precision, [&](auto element) {
        typedef decltype(element) T;
        softmax_backward<T><<<row_blocks(rows), row_threads, 0, stream>>>(
            (T *)dx, (const T *)y, (const T *)dy, rows, columns);
    });
}
