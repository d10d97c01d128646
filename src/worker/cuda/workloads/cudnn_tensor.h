/* Tensors as cuDNN's calls describe them, and the factors of "y = alpha f(x) + beta y". */
#pragma once

#include <cudnn.h>

#include "model/workload.h"

/* N, C, H, W, and how far apart neighbours along each are, in elements. */
struct cudnn_extents {
    int64_t extent[4], stride[4];
};
struct cudnn_extents cudnn_extents_nchw(int64_t n, int64_t c, int64_t h, int64_t w);
struct cudnn_extents cudnn_extents_nhwc(int64_t n, int64_t c, int64_t h, int64_t w);

/* As count_check: cuDNN's calls keep all sizes and strides of a tensor in an int. */
enum status cudnn_count_check(double elements, const char *instead, struct error *error);

/* Owned by the caller. STATUS_UNSUPPORTED if it has more elements than cuDNN's calls can count. */
enum status cudnn_tensor_create(enum precision precision, const struct cudnn_extents *extents,
                                cudnnTensorDescriptor_t *descriptor, struct error *error);

cudnnDataType_t cudnn_data_type(enum precision precision);

/* In the type that the calls want of them: double for fp64, else float. They live for ever. */
const void *cudnn_one(enum precision precision);
const void *cudnn_zero(enum precision precision);
