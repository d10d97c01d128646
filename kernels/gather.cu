#include "kernels.h"

#include "element.cuh"

template <typename T>
__global__ void gather_elements(const T *data, const int64_t *offsets, int64_t count,
                                double *values)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        values[i] = element_to_double(data[offsets[i]]);
}

template <typename T>
static cudaError_t launch(const void *data, const int64_t *offsets, int64_t count, double *values,
                          cudaStream_t stream)
{
    gather_elements<<<element_blocks(count), element_threads, 0, stream>>>((const T *)data, offsets,
                                                                           count, values);
    return cudaGetLastError();
}

cudaError_t kernel_gather(enum precision precision, const void *data, const int64_t *offsets,
                          int64_t count, double *values, cudaStream_t stream)
{
    switch (precision) {
    case PRECISION_FP64:
        return launch<double>(data, offsets, count, values, stream);
    case PRECISION_FP32:
    case PRECISION_TF32:
        return launch<float>(data, offsets, count, values, stream);
    case PRECISION_FP16:
        return launch<__half>(data, offsets, count, values, stream);
    case PRECISION_BF16:
        return launch<__nv_bfloat16>(data, offsets, count, values, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
