#include "worker/cuda/workloads/cudnn_tensor.h"

#include <limits.h>

#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/work.h"

static const cudnnDataType_t data_types[PRECISION_COUNT] = {
    [PRECISION_FP64] = CUDNN_DATA_DOUBLE,   [PRECISION_FP32] = CUDNN_DATA_FLOAT,
    [PRECISION_TF32] = CUDNN_DATA_FLOAT,    [PRECISION_FP16] = CUDNN_DATA_HALF,
    [PRECISION_BF16] = CUDNN_DATA_BFLOAT16, [PRECISION_FP8] = CUDNN_DATA_FP8_E4M3,
};

cudnnDataType_t cudnn_data_type(enum precision precision)
{
    return data_types[precision];
}

struct cudnn_extents cudnn_extents_nchw(int64_t n, int64_t c, int64_t h, int64_t w)
{
    return (struct cudnn_extents){{n, c, h, w}, {c * h * w, h * w, w, 1}};
}

struct cudnn_extents cudnn_extents_nhwc(int64_t n, int64_t c, int64_t h, int64_t w)
{
    return (struct cudnn_extents){{n, c, h, w}, {c * h * w, 1, w * c, c}};
}

enum status cudnn_count_check(double elements, const char *instead, struct error *error)
{
    return count_check("cuDNN's calls count", "elements of a tensor", elements, INT_MAX, instead,
                       error);
}

enum status cudnn_tensor_create(enum precision precision, const struct cudnn_extents *extents,
                                cudnnTensorDescriptor_t *descriptor, struct error *error)
{
    double elements = 1.0;
    int extent[4], stride[4];
    for (int i = 0; i < 4; ++i)
        elements *= (double)extents->extent[i];
    TRY(cudnn_count_check(elements, "choose smaller tensors", error));
    for (int i = 0; i < 4; ++i) {
        extent[i] = (int)extents->extent[i];
        stride[i] = (int)extents->stride[i];
    }
    TRY(CUDNN(cudnnCreateTensorDescriptor(descriptor)));
    return CUDNN(cudnnSetTensorNdDescriptor(*descriptor, data_types[precision], 4, extent, stride));
}

const void *cudnn_one(enum precision precision)
{
    static const float one = 1.0f;
    static const double wide_one = 1.0;
    return precision == PRECISION_FP64 ? (const void *)&wide_one : &one;
}

const void *cudnn_zero(enum precision precision)
{
    static const float zero = 0.0f;
    static const double wide_zero = 0.0;
    return precision == PRECISION_FP64 ? (const void *)&wide_zero : &zero;
}
