#include "worker/cuda/workloads/conv2d_format.h"

const struct conv2d_format conv2d_formats[PRECISION_COUNT] = {
    /* clang-format off */
    [PRECISION_FP64] = {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_FMA_MATH, false, true, 0, false},
    [PRECISION_FP32] = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, false, true, 0, false},
    [PRECISION_TF32] = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, true, false, 80, false},
    [PRECISION_FP16] = {CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, true, true, 70, false},
    [PRECISION_BF16] = {CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, true, true, 80, false},
    [PRECISION_FP8] = {CUDNN_DATA_FP8_E4M3, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, true, false, 89, true},
    /* clang-format on */
};

enum status conv2d_format_check(const struct gpu *gpu, enum precision precision,
                                struct error *error)
{
    const struct conv2d_format *format = &conv2d_formats[precision];
    if (gpu->capability < format->capability)
        return error_set(error, STATUS_UNSUPPORTED,
                         "%s needs compute capability %d.%d, this GPU has %d.%d",
                         precision_info[precision].name, format->capability / 10,
                         format->capability % 10, gpu->capability / 10, gpu->capability % 10);
    return STATUS_OK;
}
