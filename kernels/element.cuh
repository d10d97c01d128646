/* Conversion of an element between its stored type and the type of computation, which is double for
 * fp64 and float for all others. Also launches by precision, and the loop over all elements. */
#pragma once

#include <stdint.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* Calls launch(T()), where T is the type of the stored elements (tf32 is stored as fp32). Returns
 * the launch error. */
template <typename F> static inline cudaError_t by_precision(enum precision precision, F launch)
{
    switch (precision) {
    case PRECISION_FP64:
        launch(double());
        break;
    case PRECISION_FP32:
    case PRECISION_TF32:
        launch(float());
        break;
    case PRECISION_FP16:
        launch(__half());
        break;
    case PRECISION_BF16:
        launch(__nv_bfloat16());
        break;
    default:
        return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

static const int element_threads = 256;

/* At least one block, because an empty grid is a launch error. The kernels' loops cover elements
 * beyond the largest grid. */
static inline int element_blocks(int64_t count)
{
    const int64_t most = 65536;
    int64_t blocks = (count + element_threads - 1) / element_threads;
    return (int)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}
__device__ static inline int64_t first_element()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ static inline int64_t next_element()
{
    return (int64_t)gridDim.x * blockDim.x;
}

template <typename T> struct computed {
    typedef float type;
};
template <> struct computed<double> {
    typedef double type;
};

__device__ inline double to_computed(double x)
{
    return x;
}
__device__ inline float to_computed(float x)
{
    return x;
}
__device__ inline float to_computed(__half x)
{
    return __half2float(x);
}
__device__ inline float to_computed(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

/* A sum of up to 2^31 terms of similar size. A single sum would lose the digits of each further
 * term; here each partial sum has 1024 terms. */
template <typename C> struct long_sum {
    C whole = 0, part = 0;
    int terms = 0; /* number of terms in `part` */

    __device__ void add(C x)
    {
        part += x;
        if (++terms == 1024) {
            whole += part;
            part = 0;
            terms = 0;
        }
    }
    __device__ C value() const
    {
        return whole + part;
    }
};

/* Rounds only once, to the nearest value. */
template <typename T> __device__ inline T to_stored(typename computed<T>::type x)
{
    return x;
}
template <> __device__ inline __half to_stored<__half>(float x)
{
    return __float2half_rn(x);
}
template <> __device__ inline __nv_bfloat16 to_stored<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}

/* The elements that one access loads or stores; 16 bytes by default. */
template <typename T, int count = 16 / (int)sizeof(T)> struct alignas(count * sizeof(T)) pack {
    T at[count];
};
