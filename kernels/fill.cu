#include "kernels.h"

#include "element.cuh"

#include <cuda_fp8.h>

template <typename T>
__global__ void fill_elements(T *data, int64_t count, struct fill fill, int64_t first)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        data[i] = element_from<T>(fill_value(fill, (uint64_t)(first + i)));
}

template <typename T>
static cudaError_t launch(void *data, int64_t count, struct fill fill, int64_t first,
                          cudaStream_t stream)
{
    fill_elements<<<element_blocks(count), element_threads, 0, stream>>>((T *)data, count, fill,
                                                                         first);
    return cudaGetLastError();
}

cudaError_t kernel_fill(enum precision precision, void *data, int64_t count, struct fill fill,
                        int64_t first, cudaStream_t stream)
{
    switch (precision) {
    case PRECISION_FP64:
        return launch<double>(data, count, fill, first, stream);
    case PRECISION_FP32:
    case PRECISION_TF32:
        return launch<float>(data, count, fill, first, stream);
    case PRECISION_FP16:
        return launch<__half>(data, count, fill, first, stream);
    case PRECISION_BF16:
        return launch<__nv_bfloat16>(data, count, fill, first, stream);
    case PRECISION_FP8:
        return launch<__nv_fp8_e4m3>(data, count, fill, first, stream);
    case PRECISION_INT8: /* the fill's values must be integers: its exponent 7 */
        return launch<int8_t>(data, count, fill, first, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
