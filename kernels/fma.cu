#include "image.cuh"
#include "kernels.h"

#include <limits.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* Each chain iterates x = x * x + c. For c near -1.9 the values are chaotic and stay between c and
 * c * c + c. Full mantissas that change all the time draw as much power as real data, and the
 * compiler cannot fold them. c is an immediate, so an instruction reads one register, and register
 * banks do not limit the rate. 16 chains cover the latency with one warp on each scheduler. One
 * pass of the loop has 512 multiply-adds; the loop's three instructions are below 1 %. */
static const int chains = 16, unroll = 32;

template <typename T> struct instruction; /* multiply-add of type T */

template <typename T> struct scalar {
    static const int lanes = 1;
    typedef T element;
    static __device__ T start(float x)
    {
        return (T)x;
    }
    static __device__ T join(T a, T b)
    {
        return a + b;
    }
    static __device__ T value(T x)
    {
        return x;
    }
};
template <> struct instruction<double> : scalar<double> {
    static __device__ double step(double x)
    {
        return __fma_rn(x, x, -1.875);
    }
};
template <> struct instruction<float> : scalar<float> {
    static __device__ float step(float x)
    {
        return __fmaf_rn(x, x, -1.9f);
    }
};

/* Dot products of four bytes. The high bytes of the constant keep all bytes of x busy. */
template <> struct instruction<int> : scalar<int> {
    static const int lanes = 4;
    static __device__ int step(int x)
    {
        return __dp4a(x, x, 0x6b4d2f01);
    }
};

template <typename T, typename lane> struct packed {
    static const int lanes = 2;
    typedef lane element;
    static __device__ T join(T a, T b)
    {
        return __hadd2(a, b);
    }
    static __device__ lane value(T x)
    {
        return __hadd(x.x, x.y);
    }
};
template <> struct instruction<__half2> : packed<__half2, __half> {
    static __device__ __half2 start(float x)
    {
        return __floats2half2_rn(x, -x * 0.75f);
    }
    static __device__ __half2 step(__half2 x)
    {
        return __hfma2(x, x, __float2half2_rn(-1.9f));
    }
};
template <> struct instruction<__nv_bfloat162> : packed<__nv_bfloat162, __nv_bfloat16> {
    static __device__ __nv_bfloat162 start(float x)
    {
        return __floats2bfloat162_rn(x, -x * 0.75f);
    }
    static __device__ __nv_bfloat162 step(__nv_bfloat162 x)
    {
        FROM_800(x = __hfma2(x, x, __float2bfloat162_rn(-1.9f));)
        return x;
    }
};

template <typename T>
__global__ void __launch_bounds__(1024)
    fma_chains(typename instruction<T>::element *out, int iterations)
{
    T x[chains];
    int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int i = 0; i < chains; ++i)
        x[i] = instruction<T>::start(0.001f * (float)(1 + (thread * chains + i) % 997));
#pragma unroll 1
    for (int n = 0; n < iterations; ++n) {
#pragma unroll
        for (int u = 0; u < unroll; ++u)
#pragma unroll
            for (int i = 0; i < chains; ++i)
                x[i] = instruction<T>::step(x[i]);
    }
    T sum = x[0];
#pragma unroll
    for (int i = 1; i < chains; ++i)
        sum = instruction<T>::join(sum, x[i]);
    out[thread] = instruction<T>::value(sum);
}

template <typename T>
static cudaError_t launch(void *out, int64_t iterations, int blocks, int threads,
                          cudaStream_t stream)
{
    if (iterations < 0 || iterations > INT_MAX)
        return cudaErrorInvalidValue;
    fma_chains<T>
        <<<blocks, threads, 0, stream>>>((typename instruction<T>::element *)out, (int)iterations);
    return cudaGetLastError();
}

#define ROW(precision, type)                                                                       \
    {                                                                                              \
        precision, launch<type>, 2 * chains *unroll *instruction<type>::lanes                      \
    }
const struct fma_kernel fma_kernels[] = {
    ROW(PRECISION_FP64, double),         ROW(PRECISION_FP32, float), ROW(PRECISION_FP16, __half2),
    ROW(PRECISION_BF16, __nv_bfloat162), ROW(PRECISION_INT8, int),   {PRECISION_COUNT, NULL, 0},
};
