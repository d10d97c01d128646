#include "worker/cuda/workloads/workloads.h"

#include <stdlib.h>

#include "worker/cuda/workloads/norm_batch.h"
#include "worker/cuda/workloads/norm_layer.h"
#include "worker/cuda/workloads/norm_work.h"

static void plain_release(struct work *work)
{
    norm_work_clear((struct norm_work *)work);
    free(work);
}

static const struct work_ops plain_ops = {
    .iterate = norm_work_iterate,
    .run = tensor_work_run,
    .result = tensor_work_result,
    .stored = tensor_work_stored,
    .release = plain_release,
};

enum status norm_plain_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                               struct work **work, struct record *record, struct error *error)
{
    struct norm_work *w = calloc(1, sizeof *w);
    if (!w)
        return error_set(error, STATUS_FAILED, "no memory");
    w->tensors.base.ops = &plain_ops;
    enum status status = norm_work_create(gpu, config, seed, w, error);
    if (status) {
        plain_release(&w->tensors.base);
        return status;
    }
    tensor_work_describe(w->shape.operation == NORM_BATCH ? "columns" : "rows", record);
    *work = &w->tensors.base;
    return STATUS_OK;
}

enum status norm_cudnn_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                               struct work **work, struct record *record, struct error *error)
{
    const struct norm s = norm_from(config);
    if (s.operation == NORM_BATCH)
        return norm_batch_prepare(gpu, config, seed, work, record, error);
    if (s.precision == PRECISION_FP64)
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuDNN has no layer norms in fp64; use implementation=plain");
    return norm_layer_prepare(gpu, config, seed, work, record, error);
}
