#include "worker/cuda/workloads/norm_batch.h"

#include <stdlib.h>

#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/libraries.h"

#include "worker/cuda/workloads/cudnn_tensor.h"
#include "worker/cuda/workloads/norm_work.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* x, y, dx and dy are rows of channels: NHWC, with the rows as pixels of one column. */
struct batch_work {
    struct norm_work norm;
    cudnnBatchNormMode_t mode;
    cudnnTensorDescriptor_t data, parameters;
    void *workspace,
        *reserve; /* owned; reserve: what a training pass leaves for the backward pass */
    size_t workspace_bytes, reserve_bytes;
};

static enum status forward_run(struct gpu *gpu, const struct batch_work *b, struct error *error)
{
    const struct norm_arrays *a = &b->norm.arrays;
    enum precision precision = b->norm.shape.precision;
    return CUDNN(cudnnBatchNormalizationForwardInference(
        gpu->cudnn, b->mode, cudnn_one(precision), cudnn_zero(precision), b->data, a->x, b->data,
        a->y, b->parameters, a->gamma, a->beta, b->norm.mean, b->norm.variance, NORM_EPSILON));
}

static enum status training_call(struct gpu *gpu, const struct batch_work *b, const void *beta,
                                 void *y, void *mean, void *inverse, struct error *error)
{
    const struct norm_arrays *a = &b->norm.arrays;
    enum precision precision = b->norm.shape.precision;
    return CUDNN(cudnnBatchNormalizationForwardTrainingEx(
        gpu->cudnn, b->mode, CUDNN_BATCHNORM_OPS_BN, cudnn_one(precision), cudnn_zero(precision),
        b->data, a->x, NULL, NULL, b->data, y, b->parameters, a->gamma, beta, 1.0, NULL, NULL,
        NORM_EPSILON, mean, inverse, NULL, b->workspace, b->workspace_bytes, b->reserve,
        b->reserve_bytes));
}

static enum status training_run(struct gpu *gpu, const struct batch_work *b, struct error *error)
{
    const struct norm_arrays *a = &b->norm.arrays;
    return training_call(gpu, b, a->beta, a->y, a->mean, a->inverse, error);
}

static enum status backward_run(struct gpu *gpu, const struct batch_work *b, struct error *error)
{
    const struct norm_arrays *a = &b->norm.arrays;
    const void *one = cudnn_one(b->norm.shape.precision);
    const void *zero = cudnn_zero(b->norm.shape.precision);
    return CUDNN(cudnnBatchNormalizationBackwardEx(
        gpu->cudnn, b->mode, CUDNN_BATCHNORM_OPS_BN, one, zero, one, zero, b->data, a->x, NULL,
        NULL, b->data, a->dy, NULL, NULL, b->data, a->dx, b->parameters, a->gamma, NULL, a->dgamma,
        a->dbeta, NORM_EPSILON, a->mean_given, a->inverse_given, NULL, b->workspace,
        b->workspace_bytes, b->reserve, b->reserve_bytes));
}

static enum status batch_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    static enum status (*const passes[])(struct gpu * gpu, const struct batch_work *b,
                                         struct error *error) = {
        [NORM_FORWARD] = forward_run,
        [NORM_TRAINING] = training_run,
        [NORM_BACKWARD] = backward_run,
    };
    const struct batch_work *b = (const struct batch_work *)work;
    return passes[b->norm.shape.pass](gpu, b, error);
}

static void batch_release(struct work *work)
{
    struct batch_work *b = (struct batch_work *)work;
    arena_give(b->norm.tensors.arena, b->reserve);
    arena_give(b->norm.tensors.arena, b->workspace);
    if (b->parameters)
        cudnnDestroyTensorDescriptor(b->parameters);
    if (b->data)
        cudnnDestroyTensorDescriptor(b->data);
    norm_work_clear(&b->norm);
    free(b);
}

static const struct work_ops batch_ops = {
    .iterate = batch_iterate,
    .run = tensor_work_run,
    .result = tensor_work_result,
    .stored = tensor_work_stored,
    .release = batch_release,
};

static enum status descriptors_create(struct batch_work *b, struct error *error)
{
    const struct norm *s = &b->norm.shape;
    const struct cudnn_extents data = cudnn_extents_nhwc(1, s->columns, s->rows, 1);
    const struct cudnn_extents parameters = cudnn_extents_nhwc(1, s->columns, 1, 1);
    TRY(cudnn_tensor_create(s->precision, &data, &b->data, error));
    return cudnn_tensor_create(norm_wide(s->precision), &parameters, &b->parameters, error);
}

/* The sizes of a training pass serve both it and the backward pass that follows it. */
static enum status workspace_create(struct gpu *gpu, struct batch_work *b, struct error *error)
{
    size_t training = 0, backward = 0;
    TRY(CUDNN(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        gpu->cudnn, b->mode, CUDNN_BATCHNORM_OPS_BN, b->data, NULL, b->data, b->parameters, NULL,
        &training)));
    TRY(CUDNN(cudnnGetBatchNormalizationBackwardExWorkspaceSize(
        gpu->cudnn, b->mode, CUDNN_BATCHNORM_OPS_BN, b->data, NULL, b->data, NULL, b->data,
        b->parameters, NULL, &backward)));
    TRY(CUDNN(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
        gpu->cudnn, b->mode, CUDNN_BATCHNORM_OPS_BN, NULL, b->data, &b->reserve_bytes)));
    b->workspace_bytes = training > backward ? training : backward;
    TRY(arena_take(b->norm.tensors.arena, (double)b->workspace_bytes, "the workspace",
                   &b->workspace, error));
    return arena_take(b->norm.tensors.arena, (double)b->reserve_bytes, "the reserve space",
                      &b->reserve, error);
}

/* A backward pass is given what a training pass of the library leaves. Its y goes to where dx will be. */
static enum status batch_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                                struct batch_work *b, struct error *error)
{
    b->norm.shape = norm_from(config);
    b->mode = b->norm.shape.precision == PRECISION_FP64 ? CUDNN_BATCHNORM_SPATIAL
                                                        : CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
    TRY(descriptors_create(b, error));
    TRY(norm_work_create(gpu, config, seed, &b->norm, error));
    if (b->norm.shape.pass == NORM_FORWARD)
        return STATUS_OK;
    TRY(workspace_create(gpu, b, error));
    if (b->norm.shape.pass == NORM_TRAINING)
        return STATUS_OK;
    const struct norm_arrays *a = &b->norm.arrays;
    return training_call(gpu, b, a->gamma, a->dx, b->norm.mean, b->norm.inverse, error);
}

enum status norm_batch_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                               struct work **work, struct record *record, struct error *error)
{
    struct batch_work *b = calloc(1, sizeof *b);
    if (!b)
        return error_set(error, STATUS_FAILED, "no memory");
    b->norm.tensors.base.ops = &batch_ops;
    enum status status = batch_create(gpu, config, seed, b, error);
    if (status) {
        batch_release(&b->norm.tensors.base);
        return status;
    }
    tensor_work_describe(b->mode == CUDNN_BATCHNORM_SPATIAL ? "spatial" : "spatial-persistent",
                         record);
    record->workspace = (double)(b->workspace_bytes + b->reserve_bytes);
    *work = &b->norm.tensors.base;
    return STATUS_OK;
}
