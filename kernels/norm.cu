#include "kernels.h"

#include "block.cuh"
#include "element.cuh"

/* A block computes one mean of a norm, the mean of a row (layer norm) or of a column (batch norm).
 * For each sum the block reads all values of the row or column once. */

/* The layout of the values that share a mean, gamma and beta. */
struct shared_values {
    int64_t means, count; /* number of means, and number of values that share a mean */
    int64_t between;      /* distance of the first values of two neighbouring means, in elements */
    int64_t apart;        /* distance of two neighbouring values of one mean, in elements */
    bool batch;

    __device__ int64_t at(int64_t mean, int64_t i) const
    {
        return mean * between + i * apart;
    }
    __device__ int64_t column(int64_t mean, int64_t i) const
    {
        return batch ? mean : i;
    }
};

template <typename T>
__global__ void __launch_bounds__(row_threads) norm_forward(struct norm_arrays a, shared_values s)
{
    typedef typename computed<T>::type C;
    const T *x = (const T *)a.x;
    for (int64_t m = blockIdx.x; m < s.means; m += gridDim.x) {
        C mean, inverse;
        if (a.mean_given) {
            mean = ((const C *)a.mean_given)[m];
            inverse = ((const C *)a.inverse_given)[m];
        } else {
            long_sum<C> sum, squares;
            for (int64_t i = threadIdx.x; i < s.count; i += row_threads)
                sum.add(to_computed(x[s.at(m, i)]));
            mean = block_reduce(sum.value(), added()) / (C)s.count;
            for (int64_t i = threadIdx.x; i < s.count; i += row_threads) {
                const C difference = (C)to_computed(x[s.at(m, i)]) - mean;
                squares.add(difference * difference);
            }
            const C variance = block_reduce(squares.value(), added()) / (C)s.count;
            inverse = rsqrt(variance + (C)NORM_EPSILON);
            if (a.mean && threadIdx.x == 0) {
                ((C *)a.mean)[m] = mean;
                ((C *)a.inverse)[m] = inverse;
            }
            if (a.variance && threadIdx.x == 0)
                ((C *)a.variance)[m] = variance;
        }
        for (int64_t i = threadIdx.x; a.y && i < s.count; i += row_threads) {
            const C gamma = ((const C *)a.gamma)[s.column(m, i)];
            const C beta = ((const C *)a.beta)[s.column(m, i)];
            const C h = ((C)to_computed(x[s.at(m, i)]) - mean) * inverse;
            ((T *)a.y)[s.at(m, i)] = to_stored<T>(h * gamma + beta);
        }
    }
}

/* dx = inverse (g - sum(g) / n - h sum(g h) / n), with g = dy gamma and h = (x - mean) inverse. */
template <typename T>
__global__ void __launch_bounds__(row_threads) norm_backward(struct norm_arrays a, shared_values s)
{
    typedef typename computed<T>::type C;
    const T *x = (const T *)a.x, *dy = (const T *)a.dy;
    const C *gamma = (const C *)a.gamma;
    for (int64_t m = blockIdx.x; m < s.means; m += gridDim.x) {
        const C mean = ((const C *)a.mean_given)[m], inverse = ((const C *)a.inverse_given)[m];
        long_sum<C> sums, of_products;
        for (int64_t i = threadIdx.x; i < s.count; i += row_threads) {
            const C g = (C)to_computed(dy[s.at(m, i)]) * gamma[s.column(m, i)];
            sums.add(g);
            of_products.add(g * ((C)to_computed(x[s.at(m, i)]) - mean) * inverse);
        }
        const C sum = block_reduce(sums.value(), added()) / (C)s.count;
        const C products = block_reduce(of_products.value(), added()) / (C)s.count;
        for (int64_t i = threadIdx.x; i < s.count; i += row_threads) {
            const C g = (C)to_computed(dy[s.at(m, i)]) * gamma[s.column(m, i)];
            const C h = ((C)to_computed(x[s.at(m, i)]) - mean) * inverse;
            ((T *)a.dx)[s.at(m, i)] = to_stored<T>(inverse * (g - sum - h * products));
        }
    }
}

/* dgamma = sum of dy h over the rows, dbeta = sum of dy over the rows; a block has one column. */
template <typename T>
__global__ void __launch_bounds__(row_threads)
    norm_parameters(struct norm_arrays a, int64_t rows, int64_t columns, bool batch)
{
    typedef typename computed<T>::type C;
    const T *x = (const T *)a.x, *dy = (const T *)a.dy;
    for (int64_t column = blockIdx.x; column < columns; column += gridDim.x) {
        long_sum<C> sums, of_products;
        for (int64_t row = threadIdx.x; row < rows; row += row_threads) {
            const int64_t i = row * columns + column, m = batch ? column : row;
            const C mean = ((const C *)a.mean_given)[m], inverse = ((const C *)a.inverse_given)[m];
            const C gradient = to_computed(dy[i]);
            sums.add(gradient);
            of_products.add(gradient * ((C)to_computed(x[i]) - mean) * inverse);
        }
        const C sum = block_reduce(sums.value(), added());
        const C products = block_reduce(of_products.value(), added());
        if (threadIdx.x == 0) {
            ((C *)a.dbeta)[column] = sum;
            ((C *)a.dgamma)[column] = products;
        }
    }
}

cudaError_t kernel_norm(enum norm_kernel kernel, const struct norm *s, const struct norm_arrays *a,
                        cudaStream_t stream)
{
    const bool batch = s->operation == NORM_BATCH;
    const shared_values values = batch ? shared_values{s->columns, s->rows, 1, s->columns, true}
                                       : shared_values{s->rows, s->columns, s->columns, 1, false};
    return by_precision(s->precision, [&](auto element) {
        typedef decltype(element) T;
        if (kernel == NORM_KERNEL_PARAMETERS)
            norm_parameters<T><<<row_blocks(s->columns), row_threads, 0, stream>>>(
                *a, s->rows, s->columns, batch);
        else
            (kernel == NORM_KERNEL_Y
                 ? norm_forward<T>
                 : norm_backward<T>)<<<row_blocks(values.means), row_threads, 0, stream>>>(*a,
                                                                                           values);
    });
}
