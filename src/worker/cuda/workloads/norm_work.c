#include "worker/cuda/workloads/norm_work.h"

#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/check.h"

/* ---- memory ---- */

static struct tensor_sizes norm_sizes(const struct norm *s)
{
    bool backward = s->pass == NORM_BACKWARD;
    int64_t size = s->rows * s->columns;
    int64_t kept = backward ? s->columns : s->pass == NORM_TRAINING ? norm_statistics(s) : 0;
    return (struct tensor_sizes){
        .read = {[TENSOR_INPUT] = size,
                 [TENSOR_WEIGHT] = s->columns,
                 [TENSOR_BIAS] = backward ? 0 : s->columns,
                 [TENSOR_OUTPUT] = backward ? size : 0},
        .written = {[TENSOR_INPUT] = backward ? size : 0,
                    [TENSOR_WEIGHT] = kept,
                    [TENSOR_BIAS] = kept,
                    [TENSOR_OUTPUT] = backward ? 0 : size},
        .wide = {[TENSOR_WEIGHT] = true, [TENSOR_BIAS] = true},
    };
}

/* Means are given where the pass does not find them itself. Variances are for the library. */
static enum status given_create(struct norm_work *w, struct error *error)
{
    const struct norm *s = &w->shape;
    const double bytes =
        (double)precision_info[norm_wide(s->precision)].bytes * (double)norm_statistics(s);
    const bool of_batch = s->operation == NORM_BATCH && s->pass == NORM_FORWARD;
    if (!of_batch && s->pass != NORM_BACKWARD)
        return STATUS_OK;
    TRY(arena_take(w->tensors.arena, bytes, "the means", &w->mean, error));
    TRY(arena_take(w->tensors.arena, bytes, "the deviations", &w->inverse, error));
    return of_batch ? arena_take(w->tensors.arena, bytes, "the variances", &w->variance, error)
                    : STATUS_OK;
}

static void arrays_set(struct norm_work *w)
{
    const struct tensor_work *t = &w->tensors;
    bool kept = w->shape.pass == NORM_TRAINING, backward = w->shape.pass == NORM_BACKWARD;
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
}

enum status norm_work_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct norm_work *w = (const struct norm_work *)work;
    if (w->shape.pass != NORM_BACKWARD)
        return CUDA(kernel_norm(NORM_KERNEL_Y, &w->shape, &w->arrays, gpu->stream));
    TRY(CUDA(kernel_norm(NORM_KERNEL_PARAMETERS, &w->shape, &w->arrays, gpu->stream)));
    return CUDA(kernel_norm(NORM_KERNEL_DX, &w->shape, &w->arrays, gpu->stream));
}

static enum status given_compute(struct gpu *gpu, const struct norm_work *w, struct error *error)
{
    const struct norm_arrays moments = {
        .x = w->arrays.x, .mean = w->mean, .inverse = w->inverse, .variance = w->variance};
    return w->mean ? CUDA(kernel_norm(NORM_KERNEL_Y, &w->shape, &moments, gpu->stream)) : STATUS_OK;
}

enum status norm_work_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                             struct norm_work *work, struct error *error)
{
    work->shape = norm_from(config);
    const struct tensor_sizes sizes = norm_sizes(&work->shape);
    TRY(tensor_work_create(gpu, config, seed, &sizes, &work->tensors, error));
    TRY(given_create(work, error));
    arrays_set(work);
    return given_compute(gpu, work, error);
}

void norm_work_clear(struct norm_work *work)
{
    arena_give(work->tensors.arena, work->variance);
    arena_give(work->tensors.arena, work->inverse);
    arena_give(work->tensors.arena, work->mean);
    tensor_work_clear(&work->tensors);
}
