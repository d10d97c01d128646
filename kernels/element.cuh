/* One element of a tensor in each stored type, and the launch shape of kernels that visit all of
 * them. */
#ifndef ROOFSWEEP_ELEMENT_CUH
#define ROOFSWEEP_ELEMENT_CUH

#include <stdint.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

static const int element_threads = 256;

/* At least one block, since a grid of none is a launch error. Where the grid is too small for all
 * elements, the kernels' loops take the rest. */
static inline int element_blocks(int64_t count)
{
    const int64_t most = 65536;
    int64_t blocks = (count + element_threads - 1) / element_threads;
    return (int)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

template <typename T> __device__ inline T element_from(double value)
{
    return (T)value;
}
template <> __device__ inline __half element_from<__half>(double value)
{
    return __double2half(value);
}
template <> __device__ inline __nv_bfloat16 element_from<__nv_bfloat16>(double value)
{
    return __double2bfloat16(value);
}

__device__ inline double element_to_double(double value)
{
    return value;
}
__device__ inline double element_to_double(float value)
{
    return value;
}
__device__ inline double element_to_double(__half value)
{
    return __half2float(value);
}
__device__ inline double element_to_double(__nv_bfloat16 value)
{
    return __bfloat162float(value);
}

#endif
