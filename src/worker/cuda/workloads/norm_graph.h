/* A layer norm as an operation graph of cuDNN: one operation, forward or backward. */
#ifndef ROOFSWEEP_NORM_GRAPH_H
#define ROOFSWEEP_NORM_GRAPH_H

#include "model/workloads/norm.h"
#include "worker/cuda/workloads/cudnn_graph.h"

/* The tensors of its memory, with their unique ids. */
enum norm_tensor {
    NORM_X = 1,
    NORM_GAMMA,
    NORM_BETA,
    NORM_MEAN,    /* of a training pass results, of a backward pass inputs */
    NORM_INVERSE, /* likewise */
    NORM_DY,
    NORM_Y,
    NORM_DX,
    NORM_DGAMMA,
    NORM_DBETA,
    NORM_EPSILON_VALUE, /* the host's memory: one number in the type of the means */
    NORM_TENSORS
};

/* Adds the operation to an empty graph. has[tensor]: whether that tensor is part of it. */
enum status norm_graph_describe(struct cudnn_graph *graph, const struct norm *shape,
                                bool has[NORM_TENSORS], struct error *error);

#endif
