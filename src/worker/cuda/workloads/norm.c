#include "worker/cuda/workloads/workloads.h"

#include <stdio.h>

#include "model/workloads/norm.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/workloads/graph_work.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* cuDNN's calls of batch norms */

struct norm_work {
    struct graph_work graph; /* only cuDNN's layer norms use the graph itself */
    struct norm shape;
    struct norm_arrays arrays;
    /* Moments that a kernel computes before anything is timed; owned. NULL: the pass does not
     * need them. cuDNN's forward batch norms need variances. */
    void *mean, *inverse, *variance;
    float epsilon; /* must outlive the graph, which reads epsilon at each run */
    /* Batch norms by cuDNN. `reserve` passes data from the training pass to the backward pass. */
    cudnnBatchNormMode_t mode;
    cudnnTensorDescriptor_t data, parameters;
    void *workspace, *reserve; /* owned */
    size_t workspace_bytes, reserve_bytes;
};

TENSOR_SHAPE(norm)

/* Computes the inputs of the pass and sets the kernels' arrays, for all implementations. */
static enum status norm_open(struct gpu *gpu, struct norm_work *w, struct error *error)
{
    const struct tensor_work *t = &w->graph.tensors;
    const struct norm *s = &w->shape;
    const bool kept = s->pass == NORM_TRAINING, backward = s->pass == NORM_BACKWARD;
    const bool batch_forward = s->operation == NORM_BATCH && s->pass == NORM_FORWARD;
    const double bytes =
        (double)precision_info[norm_wide(s->precision)].bytes * (double)norm_statistics(s);
    if (batch_forward || backward) {
        TRY(arena_allocate(gpu->arena, bytes, "the means", &w->mean, error));
        TRY(arena_allocate(gpu->arena, bytes, "the deviations", &w->inverse, error));
        if (batch_forward)
            TRY(arena_allocate(gpu->arena, bytes, "the variances", &w->variance, error));
        const struct norm_arrays moments = {.x = t->input[TENSOR_INPUT],
                                            .mean = w->mean,
                                            .inverse = w->inverse,
                                            .variance = w->variance};
        TRY(CUDA(kernel_norm(NORM_KERNEL_Y, s, &moments, gpu->stream)));
    }
    w->arrays = (struct norm_arrays){
        .x = t->input[TENSOR_INPUT],
        .dy = t->input[TENSOR_OUTPUT],
        .gamma = t->input[TENSOR_WEIGHT],
        .beta = t->input[TENSOR_BIAS],
        .y = t->result[TENSOR_OUTPUT],
        .dx = t->result[TENSOR_INPUT],
        .mean = kept ? t->result[TENSOR_WEIGHT] : NULL,
        .inverse = kept ? t->result[TENSOR_BIAS] : NULL,
        .dgamma = backward ? t->result[TENSOR_WEIGHT] : NULL,
        .dbeta = backward ? t->result[TENSOR_BIAS] : NULL,
        .mean_given = w->mean,
        .inverse_given = w->inverse,
    };
    return STATUS_OK;
}

static void norm_close(struct work *work)
{
    struct norm_work *w = (struct norm_work *)work;
    struct arena *arena = w->graph.tensors.arena;
    graph_work_close(work);
    if (w->parameters)
        cudnnDestroyTensorDescriptor(w->parameters);
    if (w->data)
        cudnnDestroyTensorDescriptor(w->data);
    arena_free(arena, w->reserve);
    arena_free(arena, w->workspace);
    arena_free(arena, w->variance);
    arena_free(arena, w->inverse);
    arena_free(arena, w->mean);
}

/* ---- plain ---- */

static enum status plain_open(struct gpu *gpu, const struct config *config, struct work *work,
                              struct record *record, struct error *error)
{
    (void)config, (void)record;
    return norm_open(gpu, (struct norm_work *)work, error);
}

static enum status plain_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct norm_work *w = (const struct norm_work *)work;
    if (w->shape.pass != NORM_BACKWARD)
        return CUDA(kernel_norm(NORM_KERNEL_Y, &w->shape, &w->arrays, gpu->stream));
    TRY(CUDA(kernel_norm(NORM_KERNEL_PARAMETERS, &w->shape, &w->arrays, gpu->stream)));
    return CUDA(kernel_norm(NORM_KERNEL_DX, &w->shape, &w->arrays, gpu->stream));
}

const struct tensor_routine norm_plain = {
    .bytes = sizeof(struct norm_work),
    .algorithm = "block-per-mean",
    .shape = norm_shape,
    .open = plain_open,
    .iterate = plain_iterate,
    .close = norm_close,
};

/* ---- batch norms by cuDNN's calls ---- */

static enum status training_call(struct gpu *gpu, const struct norm_work *w, const void *beta,
                                 void *y, void *mean, void *inverse, struct error *error)
{
    const enum precision precision = w->shape.precision;
    return CUDNN(cudnnBatchNormalizationForwardTrainingEx(
        gpu->cudnn, w->mode, CUDNN_BATCHNORM_OPS_BN, cudnn_one(precision), cudnn_zero(precision),
        w->data, w->arrays.x, NULL, NULL, w->data, y, w->parameters, w->arrays.gamma, beta, 1.0,
        NULL, NULL, NORM_EPSILON, mean, inverse, NULL, w->workspace, w->workspace_bytes, w->reserve,
        w->reserve_bytes));
}

static enum status batch_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct norm_work *w = (const struct norm_work *)work;
    const struct norm_arrays *a = &w->arrays;
    const void *one = cudnn_one(w->shape.precision), *zero = cudnn_zero(w->shape.precision);
    if (w->shape.pass == NORM_TRAINING)
        return training_call(gpu, w, a->beta, a->y, a->mean, a->inverse, error);
    if (w->shape.pass == NORM_FORWARD)
        return CUDNN(cudnnBatchNormalizationForwardInference(
            gpu->cudnn, w->mode, one, zero, w->data, a->x, w->data, a->y, w->parameters, a->gamma,
            a->beta, w->mean, w->variance, NORM_EPSILON));
    return CUDNN(cudnnBatchNormalizationBackwardEx(
        gpu->cudnn, w->mode, CUDNN_BATCHNORM_OPS_BN, one, zero, one, zero, w->data, a->x, NULL,
        NULL, w->data, a->dy, NULL, NULL, w->data, a->dx, w->parameters, a->gamma, NULL, a->dgamma,
        a->dbeta, NORM_EPSILON, a->mean_given, a->inverse_given, NULL, w->workspace,
        w->workspace_bytes, w->reserve, w->reserve_bytes));
}

/* One workspace serves the training pass and the backward pass after it. */
static enum status workspace_create(struct gpu *gpu, struct norm_work *w, struct error *error)
{
    size_t training = 0, backward = 0;
    TRY(CUDNN(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        gpu->cudnn, w->mode, CUDNN_BATCHNORM_OPS_BN, w->data, NULL, w->data, w->parameters, NULL,
        &training)));
    TRY(CUDNN(cudnnGetBatchNormalizationBackwardExWorkspaceSize(
        gpu->cudnn, w->mode, CUDNN_BATCHNORM_OPS_BN, w->data, NULL, w->data, NULL, w->data,
        w->parameters, NULL, &backward)));
    TRY(CUDNN(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
        gpu->cudnn, w->mode, CUDNN_BATCHNORM_OPS_BN, NULL, w->data, &w->reserve_bytes)));
    w->workspace_bytes = training > backward ? training : backward;
    TRY(arena_allocate(gpu->arena, (double)w->workspace_bytes, "the workspace", &w->workspace,
                       error));
    return arena_allocate(gpu->arena, (double)w->reserve_bytes, "the reserve space", &w->reserve,
                          error);
}

/* For cuDNN the rows are the pixels of an NHWC image of width 1. Before a backward pass its
 * training pass runs once, and writes y to dx. */
static enum status batch_open(struct gpu *gpu, const struct config *config, struct work *work,
                              struct record *record, struct error *error)
{
    struct norm_work *w = (struct norm_work *)work;
    const struct norm s = w->shape;
    const bool wide = s.precision == PRECISION_FP64;
    const struct cudnn_extents data = cudnn_extents_nhwc(1, s.columns, s.rows, 1);
    const struct cudnn_extents parameters = cudnn_extents_nhwc(1, s.columns, 1, 1);
    (void)config;
    w->mode = wide ? CUDNN_BATCHNORM_SPATIAL : CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
    tensor_work_describe(wide ? "spatial" : "spatial-persistent", UNIT_VECTOR, 0.0, record);
    TRY(cudnn_tensor_create(s.precision, &data, &w->data, error));
    TRY(cudnn_tensor_create(norm_wide(s.precision), &parameters, &w->parameters, error));
    TRY(norm_open(gpu, w, error));
    if (s.pass == NORM_FORWARD)
        return STATUS_OK;
    TRY(workspace_create(gpu, w, error));
    record->workspace = (double)(w->workspace_bytes + w->reserve_bytes);
    return s.pass == NORM_TRAINING
               ? STATUS_OK
               : training_call(gpu, w, w->arrays.gamma, w->arrays.dx, w->mean, w->inverse, error);
}

/* ---- layer norms by a graph of cuDNN: one operation, forward or backward ---- */

/* Unique ids of the graph's tensors. */
enum norm_tensor {
    NORM_X = 1,
    NORM_GAMMA,
    NORM_BETA,
    NORM_MEAN,    /* result of a training pass, input of a backward pass */
    NORM_INVERSE, /* as NORM_MEAN */
    NORM_DY,
    NORM_Y,
    NORM_DX,
    NORM_DGAMMA,
    NORM_DBETA,
    NORM_EPSILON_VALUE, /* a number in host memory, in the type of the means */
    NORM_TENSORS
};

/* N is the rows, C the columns, as in cuDNN's documentation of layer norms. */
static struct cudnn_graph_tensor tensor_of(const struct norm *s, int tensor)
{
    const bool data =
        tensor == NORM_X || tensor == NORM_Y || tensor == NORM_DX || tensor == NORM_DY;
    const bool of_rows = data || tensor == NORM_MEAN || tensor == NORM_INVERSE;
    const bool by_value = tensor == NORM_EPSILON_VALUE;
    const int64_t columns = by_value || (of_rows && !data) ? 1 : s->columns;
    return (struct cudnn_graph_tensor){
        .uid = tensor,
        .type = cudnn_data_type(data ? s->precision : norm_wide(s->precision)),
        .extents = cudnn_extents_nhwc(of_rows ? s->rows : 1, columns, 1, 1),
        .alignment = 16,
        .by_value = by_value,
    };
}

/* Tensors of each pass, with the operation's attribute names; tensor 0 ends a list. */
static const struct part {
    int tensor;
    cudnnBackendAttributeName_t name;
} parts[3][9] = {
    [NORM_FORWARD] = {{NORM_X, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC},
                      {NORM_GAMMA, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC},
                      {NORM_BETA, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC},
                      {NORM_EPSILON_VALUE, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC},
                      {NORM_Y, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC}},
    [NORM_TRAINING] = {{NORM_X, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC},
                       {NORM_GAMMA, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC},
                       {NORM_BETA, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC},
                       {NORM_EPSILON_VALUE, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC},
                       {NORM_MEAN, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC},
                       {NORM_INVERSE, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC},
                       {NORM_Y, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC}},
    [NORM_BACKWARD] = {{NORM_X, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC},
                       {NORM_DY, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC},
                       {NORM_GAMMA, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC},
                       {NORM_MEAN, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC},
                       {NORM_INVERSE, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC},
                       {NORM_DX, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC},
                       {NORM_DGAMMA, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC},
                       {NORM_DBETA, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC}},
};

static enum status layer_describe(struct norm_work *w, struct error *error)
{
    const struct norm_arrays *a = &w->arrays;
    const bool backward = w->shape.pass == NORM_BACKWARD;
    const void *const memory[NORM_TENSORS] = {
        [NORM_X] = a->x,
        [NORM_GAMMA] = a->gamma,
        [NORM_BETA] = a->beta,
        [NORM_MEAN] = backward ? w->mean : a->mean,
        [NORM_INVERSE] = backward ? w->inverse : a->inverse,
        [NORM_DY] = a->dy,
        [NORM_Y] = a->y,
        [NORM_DX] = a->dx,
        [NORM_DGAMMA] = a->dgamma,
        [NORM_DBETA] = a->dbeta,
        [NORM_EPSILON_VALUE] = &w->epsilon,
    };
    const cudnnBackendNormMode_t mode = CUDNN_LAYER_NORM;
    const cudnnBackendNormFwdPhase_t phase =
        w->shape.pass == NORM_TRAINING ? CUDNN_NORM_FWD_TRAINING : CUDNN_NORM_FWD_INFERENCE;
    cudnnBackendDescriptor_t tensors[NORM_TENSORS];
    struct cudnn_attribute attributes[NORM_TENSORS + 3] = {
        {backward ? CUDNN_ATTR_OPERATION_NORM_BWD_MODE : CUDNN_ATTR_OPERATION_NORM_FWD_MODE,
         CUDNN_TYPE_NORM_MODE, 1, &mode},
        {CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase},
    };
    int count = backward ? 1 : 2;
    for (const struct part *part = parts[w->shape.pass]; part->tensor; ++part) {
        const struct cudnn_graph_tensor tensor = tensor_of(&w->shape, part->tensor);
        cudnnBackendDescriptor_t *descriptor = &tensors[part->tensor];
        TRY(cudnn_graph_tensor(w->graph.graph, &tensor, descriptor, error));
        attributes[count++] =
            (struct cudnn_attribute){part->name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, descriptor};
        graph_work_bind(&w->graph, part->tensor, memory[part->tensor]);
    }
    attributes[count] = (struct cudnn_attribute){0};
    return cudnn_graph_operate(w->graph.graph,
                               backward ? CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR
                                        : CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
                               attributes, error);
}

/* A norm cannot use tensor units, whatever an engine reports. */
static enum status layer_open(struct gpu *gpu, const struct config *config, struct work *work,
                              struct record *record, struct error *error)
{
    struct norm_work *w = (struct norm_work *)work;
    w->epsilon = (float)NORM_EPSILON;
    (void)config;
    TRY(norm_open(gpu, w, error));
    TRY(graph_work_create(gpu, &w->graph, error));
    TRY(layer_describe(w, error));
    TRY(graph_work_choose(gpu, &w->graph, record, error));
    snprintf(record->math, sizeof record->math, "fma");
    record->unit = UNIT_VECTOR;
    return STATUS_OK;
}

static enum status layer_check(const struct gpu *gpu, const struct config *config,
                               struct error *error)
{
    (void)gpu;
    return config_precision(config) == PRECISION_FP64
               ? error_set(error, STATUS_UNSUPPORTED,
                           "cuDNN has no layer norms in fp64; use implementation=plain")
               : STATUS_OK;
}

const struct tensor_routine norm_cudnn_batch = {
    .bytes = sizeof(struct norm_work),
    .shape = norm_shape,
    .open = batch_open,
    .iterate = batch_iterate,
    .close = norm_close,
};

const struct tensor_routine norm_cudnn_layer = {
    .bytes = sizeof(struct norm_work),
    .shape = norm_shape,
    .check = layer_check,
    .open = layer_open,
    .iterate = graph_work_iterate,
    .close = norm_close,
};

bool norm_is_batch(const struct config *config)
{
    return norm_from(config).operation == NORM_BATCH;
}
