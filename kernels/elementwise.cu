#include "kernels.h"

#include <limits.h>

#include "piece.cuh"

/* The functions, in float and double. Those of float use the special function units: an exponential and
 * a reciprocal, exact to a few units in the last place of 1. */
struct relu {
    static const int inputs = 1;
    template <typename C> static __device__ C of(C x, C)
    {
        return x > 0 ? x : 0;
    }
};

struct sigmoid {
    static const int inputs = 1;
    static __device__ float of(float x, float)
    {
        return __fdividef(1.0f, 1.0f + __expf(-x));
    }
    static __device__ double of(double x, double)
    {
        return 1.0 / (1.0 + exp(-x));
    }
};

struct tangent {
    static const int inputs = 1;
    static __device__ float of(float x, float)
    {
        return 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * x));
    }
    static __device__ double of(double x, double)
    {
        return tanh(x);
    }
};

struct sum {
    static const int inputs = 2;
    template <typename C> static __device__ C of(C x, C w)
    {
        return x + w;
    }
};

struct scaled {
    static const int inputs = 1;
    template <typename C> static __device__ C of(C x, C)
    {
        return (C)ELEMENTWISE_FACTOR * x;
    }
};

/* As in memory.cu: a copy is fastest with one access of 16 bytes by each thread, in many short blocks that go
 * through memory in order; with two inputs it is four. As many blocks as give each thread one turn. */
template <typename F> struct shape {
    static const int threads = 256, loads = F::inputs == 1 ? 1 : 4;
};

template <typename F, typename T, int lanes>
__device__ static inline piece<T, lanes> apply(const piece<T, lanes> &x, const piece<T, lanes> &w)
{
    typedef typename computed<T>::type C;
    piece<T, lanes> y;
#pragma unroll
    for (int i = 0; i < lanes; ++i)
        y.at[i] = to_stored<T>(F::of((C)to_computed(x.at[i]), (C)to_computed(w.at[i])));
    return y;
}

template <typename F, typename T>
__global__ void __launch_bounds__(shape<F>::threads)
    elementwise(T *y, const T *x, const T *w, int64_t count)
{
    const int threads = shape<F>::threads, loads = shape<F>::loads;
    const int lanes = 16 / (int)sizeof(T);
    const int64_t pieces = count / lanes, stride = (int64_t)gridDim.x * (threads * loads);
    const piece<T> *from = (const piece<T> *)x, *other = (const piece<T> *)w;
    piece<T> *to = (piece<T> *)y;
#pragma unroll 1
    for (int64_t first = (int64_t)blockIdx.x * (threads * loads) + threadIdx.x; first < pieces;
         first += stride) {
        piece<T> a[loads], b[loads];
#pragma unroll
        for (int i = 0; i < loads; ++i)
            if (first + i * threads < pieces) {
                a[i] = streamed(from + first + i * threads);
                b[i] = F::inputs == 2 ? streamed(other + first + i * threads) : a[i];
            }
#pragma unroll
        for (int i = 0; i < loads; ++i)
            if (first + i * threads < pieces)
                to[first + i * threads] = apply<F, T>(a[i], b[i]);
    }
    int64_t last = pieces * lanes + threadIdx.x; /* what fills no piece */
    if (blockIdx.x == 0 && last < count) {
        piece<T, 1> a = {{x[last]}}, b = {{F::inputs == 2 ? w[last] : x[last]}};
        y[last] = apply<F, T>(a, b).at[0];
    }
}

template <typename F, typename T>
static cudaError_t launch(void *y, const void *x, const void *w, int64_t count, cudaStream_t stream)
{
    const int threads = shape<F>::threads;
    const int64_t each = (int64_t)threads * shape<F>::loads * (16 / (int64_t)sizeof(T));
    int64_t blocks = (count + each - 1) / each;
    if (count < 1)
        return cudaErrorInvalidValue;
    elementwise<F, T><<<(unsigned)(blocks < INT_MAX ? blocks : INT_MAX), threads, 0, stream>>>(
        (T *)y, (const T *)x, (const T *)w, count);
    return cudaGetLastError();
}

typedef cudaError_t launcher(void *y, const void *x, const void *w, int64_t count,
                             cudaStream_t stream);

/* By enum elementwise_operation. */
template <typename T> static launcher *launcher_of(enum elementwise_operation operation)
{
    static launcher *const launchers[ELEMENTWISE_OPERATIONS] = {
        launch<relu, T>, launch<sigmoid, T>, launch<tangent, T>, launch<sum, T>, launch<scaled, T>};
    return launchers[operation];
}

cudaError_t kernel_elementwise(enum precision precision, enum elementwise_operation operation,
                               void *y, const void *x, const void *w, int64_t count,
                               cudaStream_t stream)
{
    switch (precision) {
    case PRECISION_FP64:
        return launcher_of<double>(operation)(y, x, w, count, stream);
    case PRECISION_FP32:
        return launcher_of<float>(operation)(y, x, w, count, stream);
    case PRECISION_FP16:
        return launcher_of<__half>(operation)(y, x, w, count, stream);
    case PRECISION_BF16:
        return launcher_of<__nv_bfloat16>(operation)(y, x, w, count, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
