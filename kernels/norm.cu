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

/* A pack has `each` neighbouring values of one mean. */
template <typename T, int each>
__global__ void __launch_bounds__(row_threads) norm_forward(struct norm_arrays a, shared_values s)
{
    typedef typename computed<T>::type C;
    const int64_t begin = (int64_t)threadIdx.x * each, step = (int64_t)blockDim.x * each;
    for (int64_t m = blockIdx.x; m < s.means; m += gridDim.x) {
        auto x = [&](int64_t i) { return *(const pack<T, each> *)((const T *)a.x + s.at(m, i)); };
        long_sum<C> sum, squares;
        for (int64_t i = begin; i < s.count; i += step)
            for (T of : x(i).at)
                sum.add(to_computed(of));
        const C mean = block_reduce(sum.value(), added()) / (C)s.count;
        for (int64_t i = begin; i < s.count; i += step)
            for (T of : x(i).at)
                squares.add(((C)to_computed(of) - mean) * ((C)to_computed(of) - mean));
        const C variance = block_reduce(squares.value(), added()) / (C)s.count;
        const C inverse = rsqrt(variance + (C)NORM_EPSILON);
        if (a.mean && threadIdx.x == 0) {
            ((C *)a.mean)[m] = mean;
            ((C *)a.inverse)[m] = inverse;
        }
        if (a.variance && threadIdx.x == 0)
            ((C *)a.variance)[m] = variance;
        for (int64_t i = begin; a.y && i < s.count; i += step) {
            pack<T, each> values = x(i);
            for (int k = 0; k < each; ++k) {
                const int64_t column = s.column(m, i + k);
                const C h = ((C)to_computed(values.at[k]) - mean) * inverse;
                values.at[k] =
                    to_stored<T>(h * ((const C *)a.gamma)[column] + ((const C *)a.beta)[column]);
            }
            *(pack<T, each> *)((T *)a.y + s.at(m, i)) = values;
        }
    }
}

/* Batch norm with known means, as in inference. */
template <typename T, int each>
__global__ void __launch_bounds__(element_threads)
    norm_apply(struct norm_arrays a, int64_t count, int64_t columns)
{
    typedef typename computed<T>::type C;
    const C *mean = (const C *)a.mean_given, *inverse = (const C *)a.inverse_given;
    const C *gamma = (const C *)a.gamma, *beta = (const C *)a.beta;
    for (int64_t i = first_element(); i < count / each; i += next_element()) {
        pack<T, each> values = ((const pack<T, each> *)a.x)[i];
        const int64_t column = i * each % columns;
        for (int k = 0; k < each; ++k) {
            const C h = ((C)to_computed(values.at[k]) - mean[column + k]) * inverse[column + k];
            values.at[k] = to_stored<T>(h * gamma[column + k] + beta[column + k]);
        }
        ((pack<T, each> *)a.y)[i] = values;
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
        const int each = sizeof(pack<T>) / sizeof(T);
        const int64_t count = s->rows * s->columns;
        const bool packed = s->columns % each == 0;
        /* about four packs for each thread: few warps reduce fast */
        const int warps = (int)min(max(s->columns / each / 128, (int64_t)1), (int64_t)8);
        if (kernel == NORM_KERNEL_PARAMETERS)
            norm_parameters<T><<<row_blocks(s->columns), row_threads, 0, stream>>>(
                *a, s->rows, s->columns, batch);
        else if (kernel == NORM_KERNEL_Y && a->mean_given)
            (packed ? norm_apply<T, each>
                    : norm_apply<T, 1>)<<<element_blocks(packed ? count / each : count),
                                          element_threads, 0, stream>>>(*a, count, s->columns);
        else if (kernel == NORM_KERNEL_Y && packed && !batch)
            norm_forward<T, each><<<row_blocks(values.means), 32 * warps, 0, stream>>>(*a, values);
        else
            (kernel == NORM_KERNEL_DX
                 ? norm_backward<T>
                 : norm_forward<T, 1>)<<<row_blocks(values.means), row_threads, 0, stream>>>(
                *a, values);
    });
}
