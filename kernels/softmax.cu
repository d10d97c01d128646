#include "kernels.h"

#include <limits.h>

#include "row.cuh"

/* One instruction of the special function units, and a multiplication. */
__device__ static inline float exponential(float x)
{
    return __expf(x);
}
__device__ static inline double exponential(double x)
{
    return exp(x);
}

/* ---- a row in registers: what is read is read once ---- */

template <typename T, int lanes, int pieces>
__global__ void __launch_bounds__(row_threads, 1)
    softmax_forward(T *y, const T *x, const T *, int64_t rows, int64_t columns)
{
    typedef typename computed<T>::type C;
    __shared__ C room[32];
    int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    row_part<T, lanes, pieces> v;
    if (row >= rows)
        return;
    v.load(x + row * columns, columns, (C)-INFINITY);
    C largest = v.at[0], sum = 0;
#pragma unroll
    for (int i = 1; i < v.count; ++i)
        largest = row_larger()(largest, v.at[i]);
    largest = row_reduce(largest, row_larger(), room);
#pragma unroll
    for (int i = 0; i < v.count; ++i)
        sum += v.at[i] = exponential(v.at[i] - largest);
    C share = 1 / row_reduce(sum, row_sum(), room);
#pragma unroll
    for (int i = 0; i < v.count; ++i)
        v.at[i] *= share;
    v.store(y + row * columns, columns);
}

template <typename T, int lanes, int pieces>
__global__ void __launch_bounds__(row_threads, 1)
    softmax_backward(T *dx, const T *y, const T *dy, int64_t rows, int64_t columns)
{
    typedef typename computed<T>::type C;
    __shared__ C room[32];
    int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    row_part<T, lanes, pieces> v, d;
    if (row >= rows)
        return;
    v.load(y + row * columns, columns, 0);
    d.load(dy + row * columns, columns, 0);
    C sum = 0;
#pragma unroll
    for (int i = 0; i < v.count; ++i)
        sum += v.at[i] * d.at[i];
    sum = row_reduce(sum, row_sum(), room);
#pragma unroll
    for (int i = 0; i < v.count; ++i)
        v.at[i] *= d.at[i] - sum;
    v.store(dx + row * columns, columns);
}

/* ---- longer rows: a block reads its row twice, the second time from L2 if it is lucky ---- */

static const int long_threads = 512;

template <typename T, int lanes>
__global__ void __launch_bounds__(long_threads)
    softmax_forward_long(T *y, const T *x, const T *, int64_t columns)
{
    typedef typename computed<T>::type C;
    __shared__ C room[32];
    const piece<T, lanes> *from = (const piece<T, lanes> *)(x + blockIdx.x * columns);
    piece<T, lanes> *to = (piece<T, lanes> *)(y + blockIdx.x * columns);
    C largest = -INFINITY, sum = 0; /* of exponentials, relative to the largest value so far */
#pragma unroll 4
    for (int64_t p = threadIdx.x; p < columns / lanes; p += long_threads) {
        piece<T, lanes> v = from[p];
        C before = largest;
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            largest = row_larger()(largest, (C)to_computed(v.at[i]));
        sum *= exponential(before - largest);
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            sum += exponential((C)to_computed(v.at[i]) - largest);
    }
    C mine = largest;
    largest = row_reduce(mine, row_larger(), room);
    C share = 1 / row_reduce(sum * exponential(mine - largest), row_sum(), room);
#pragma unroll 4
    for (int64_t p = threadIdx.x; p < columns / lanes; p += long_threads) {
        piece<T, lanes> v = from[p];
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            v.at[i] = to_stored<T>(exponential((C)to_computed(v.at[i]) - largest) * share);
        to[p] = v;
    }
}

template <typename T, int lanes>
__global__ void __launch_bounds__(long_threads)
    softmax_backward_long(T *dx, const T *y, const T *dy, int64_t columns)
{
    typedef typename computed<T>::type C;
    __shared__ C room[32];
    const piece<T, lanes> *from = (const piece<T, lanes> *)(y + blockIdx.x * columns);
    const piece<T, lanes> *other = (const piece<T, lanes> *)(dy + blockIdx.x * columns);
    piece<T, lanes> *to = (piece<T, lanes> *)(dx + blockIdx.x * columns);
    C sum = 0;
#pragma unroll 2
    for (int64_t p = threadIdx.x; p < columns / lanes; p += long_threads) {
        piece<T, lanes> v = from[p], d = other[p];
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            sum += (C)to_computed(v.at[i]) * (C)to_computed(d.at[i]);
    }
    sum = row_reduce(sum, row_sum(), room);
#pragma unroll 2
    for (int64_t p = threadIdx.x; p < columns / lanes; p += long_threads) {
        piece<T, lanes> v = from[p], d = other[p];
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            v.at[i] = to_stored<T>((C)to_computed(v.at[i]) * ((C)to_computed(d.at[i]) - sum));
        to[p] = v;
    }
}

/* ---- launches ---- */

template <typename T, int lanes>
static cudaError_t launch_lanes(bool forward, T *to, const T *x, const T *dy, int64_t rows,
                                int64_t columns, cudaStream_t stream)
{
    typedef void kernel(T *, const T *, const T *, int64_t, int64_t);
    static kernel *const kernels[2][3] = {
        {softmax_backward<T, lanes, 1>, softmax_backward<T, lanes, 2>,
         softmax_backward<T, lanes, 4>},
        {softmax_forward<T, lanes, 1>, softmax_forward<T, lanes, 2>, softmax_forward<T, lanes, 4>}};
    row_shape shape = row_shape_of(rows, columns, lanes);
    if (shape.blocks > INT_MAX)
        return cudaErrorInvalidValue;
    if (shape.pieces > 0)
        kernels[forward][shape.pieces / 2]<<<(unsigned)shape.blocks, shape.block, 0, stream>>>(
            to, x, dy, rows, columns);
    else
        (forward ? softmax_forward_long<T, lanes>
                 : softmax_backward_long<T, lanes>)<<<(unsigned)rows, long_threads, 0, stream>>>(
            to, x, dy, columns);
    return cudaGetLastError();
}

template <typename T>
static cudaError_t launch(bool forward, void *to, const void *x, const void *dy, int64_t rows,
                          int64_t columns, cudaStream_t stream)
{
    const int lanes = 16 / (int)sizeof(T);
    auto *function = columns % lanes == 0 ? launch_lanes<T, lanes> : launch_lanes<T, 1>;
    return function(forward, (T *)to, (const T *)x, (const T *)dy, rows, columns, stream);
}

static cudaError_t launch_precision(bool forward, enum precision precision, void *to, const void *x,
                                    const void *dy, int64_t rows, int64_t columns,
                                    cudaStream_t stream)
{
    switch (precision) {
    case PRECISION_FP64:
        return launch<double>(forward, to, x, dy, rows, columns, stream);
    case PRECISION_FP32:
        return launch<float>(forward, to, x, dy, rows, columns, stream);
    case PRECISION_FP16:
        return launch<__half>(forward, to, x, dy, rows, columns, stream);
    case PRECISION_BF16:
        return launch<__nv_bfloat16>(forward, to, x, dy, rows, columns, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t kernel_softmax(enum precision precision, void *y, const void *x, int64_t rows,
                           int64_t columns, cudaStream_t stream)
{
    return launch_precision(true, precision, y, x, NULL, rows, columns, stream);
}

cudaError_t kernel_softmax_gradient(enum precision precision, void *dx, const void *y,
                                    const void *dy, int64_t rows, int64_t columns,
                                    cudaStream_t stream)
{
    return launch_precision(false, precision, dx, y, dy, rows, columns, stream);
}
