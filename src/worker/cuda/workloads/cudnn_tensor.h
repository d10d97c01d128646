/* Tensor descriptors of cuDNN's calls, and the factors of "y = alpha f(x) + beta y". */
#pragma once

#include <cudnn.h>

#include "model/workload.h"

/* Sizes N, C, H, W and strides in elements. */
struct cudnn_extents {
    int64_t extent[4], stride[4];
};
struct cudnn_extents cudnn_extents_nchw(int64_t n, int64_t c, int64_t h, int64_t w);
struct cudnn_extents cudnn_extents_nhwc(int64_t n, int64_t c, int64_t h, int64_t w);

/* As count_check, with INT_MAX: cuDNN's calls keep sizes and strides of a tensor in an int. */
enum status cudnn_count_check(double elements, const char *instead, struct error *error);

/* The caller destroys *descriptor. STATUS_UNSUPPORTED: too many elements for cuDNN's calls. */
enum status cudnn_tensor_create(enum precision precision, const struct cudnn_extents *extents,
                                cudnnTensorDescriptor_t *descriptor, struct error *error);

cudnnDataType_t cudnn_data_type(enum precision precision);

/* Return 1 and 0 in the type of the calls' factors: double for fp64, otherwise float. Static
 * memory. */
const void *cudnn_one(enum precision precision);
const void *cudnn_zero(enum precision precision);
