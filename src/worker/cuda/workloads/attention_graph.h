/* Attention as an operation graph of cuDNN: the operations of its documentation's "Fused Flash Attention
 * fprop", which an engine runs as one kernel: product, scale, mask, softmax, product. */
#ifndef ROOFSWEEP_ATTENTION_GRAPH_H
#define ROOFSWEEP_ATTENTION_GRAPH_H

#include "model/workloads/attention.h"
#include "worker/cuda/workloads/cudnn_graph.h"

/* The tensors of its memory, with their unique ids. The last two are numbers that are passed by
 * value: the host's memory. */
enum attention_tensor {
    ATTENTION_Q = 1,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_O,
    ATTENTION_SCALE, /* float */
    ATTENTION_HIDDEN /* float: the score of a key that is not seen; only with a causal mask */
};

/* Adds the operations to an empty graph. fp16 or bf16. */
enum status attention_graph_describe(struct cudnn_graph *graph, const struct attention *shape,
                                     struct error *error);

#endif
