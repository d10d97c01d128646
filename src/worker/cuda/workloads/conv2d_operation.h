/* One convolution as an operation graph of cuDNN: a graph of one operation, with its three tensors. */
#ifndef ROOFSWEEP_CONV2D_OPERATION_H
#define ROOFSWEEP_CONV2D_OPERATION_H

#include "model/fill.h"
#include "model/workloads/conv2d.h"
#include "worker/cuda/workloads/cudnn_descriptors.h"

struct conv2d_operation {
    const struct conv2d *shape;
    cudnnDataType_t data, result, compute; /* result: of forward's output */
};

/* cuDNN's name of a tensor in the graph and in a variant pack. */
int64_t conv2d_operation_uid(enum tensor tensor);

/* The graph's descriptor, with those that it consists of, on the stack. */
enum status conv2d_operation_describe(const struct conv2d_operation *operation, cudnnHandle_t cudnn,
                                      struct cudnn_descriptors *stack,
                                      cudnnBackendDescriptor_t *graph, struct error *error);

#endif
