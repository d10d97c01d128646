/* Values in pieces of 16 bytes, which is what streaming kernels load and store at a time, and in the
 * type that they are computed in: double of fp64, else float. */
#ifndef ROOFSWEEP_PIECE_CUH
#define ROOFSWEEP_PIECE_CUH

#include <stdint.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T, int lanes = 16 / (int)sizeof(T)> struct alignas(lanes * sizeof(T)) piece {
    T at[lanes];
};

/* What is read once: past L1. */
template <typename P> __device__ inline P streamed(const P *from)
{
    if constexpr (sizeof(P) == sizeof(uint4)) {
        const uint4 bits = __ldcg((const uint4 *)from);
        return *(const P *)&bits;
    }
    return *from;
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

#endif
