/* One element of a tensor: in each stored type, and in the type that it is computed in, which is
 * double of fp64 and else float. The loop and the launch of kernels that visit all elements. */
#pragma once

#include <stdint.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* Calls launch<T>(...) with the precision's type; tf32 is stored as fp32. */
#define BY_PRECISION(precision, launch, ...)                                                       \
    switch (precision) {                                                                           \
    case PRECISION_FP64:                                                                           \
        return launch<double>(__VA_ARGS__);                                                        \
    case PRECISION_FP32:                                                                           \
    case PRECISION_TF32:                                                                           \
        return launch<float>(__VA_ARGS__);                                                         \
    case PRECISION_FP16:                                                                           \
        return launch<__half>(__VA_ARGS__);                                                        \
    case PRECISION_BF16:                                                                           \
        return launch<__nv_bfloat16>(__VA_ARGS__);                                                 \
    default:                                                                                       \
        return cudaErrorInvalidValue;                                                              \
    }

static const int element_threads = 256;

/* At least one block, since a grid of none is a launch error. Where the grid is too small for all
 * elements, the kernels' loops take the rest. */
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

/* Rounded once, to nearest. */
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

/* Elements that are loaded or stored in one access, of 16 bytes unless told otherwise. */
template <typename T, int count = 16 / (int)sizeof(T)> struct alignas(count * sizeof(T)) pack {
    T at[count];
};
