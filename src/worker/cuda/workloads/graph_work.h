/* Work of one operation graph of cuDNN, by its fastest plan. Structs of such workloads begin with
 * struct graph_work. Order of calls: create; describe the graph and bind its tensors; choose. */
#pragma once

#include "worker/cuda/workloads/cudnn_graph.h"
#include "worker/gpu/tensor_work.h"

enum { GRAPH_WORK_TENSORS = 16 };

struct graph_work {
    struct tensor_work tensors;
    struct cudnn_graph *graph; /* owned; NULL: not created */
    struct cudnn_binding bound;
    void *workspace; /* owned */
    int64_t uids[GRAPH_WORK_TENSORS], count;
    void *memory[GRAPH_WORK_TENSORS];
};

enum status graph_work_create(const struct gpu *gpu, struct graph_work *work, struct error *error);
/* Binds the graph's tensor `uid`: device memory, or host memory for a tensor by value. */
void graph_work_bind(struct graph_work *work, int64_t uid, const void *memory);
/* Finds the plans and binds the fastest. STATUS_UNSUPPORTED with a reason: no engine takes the
 * graph. */
enum status graph_work_choose(struct gpu *gpu, struct graph_work *work, struct record *record,
                              struct error *error);

/* As in struct tensor_routine. */
void graph_work_close(struct work *work);
enum status graph_work_iterate(struct gpu *gpu, struct work *work, struct error *error);
