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

/* Enough chunks of the rows for every multiprocessor, each of enough rows to be worth its sums. */
static int chunks_of(const struct gpu *gpu, const struct norm *s)
{
    const int64_t least = 64, width = 512, beside = 3; /* rows; bytes of a block; blocks */
    int64_t across = (s->columns * (int64_t)precision_info[s->precision].bytes + width - 1) / width;
    int64_t wanted = s->operation == NORM_LAYER ? 2 : (beside + across - 1) / across;
    int64_t chunks = wanted * gpu->multiprocessors, most = (s->rows + least - 1) / least;
    chunks = chunks < most ? chunks : most;
    return (int)(chunks < NORM_CHUNKS ? chunks : NORM_CHUNKS);
}

static enum status given_create(struct gpu *gpu, struct norm_work *w, struct error *error)
{
    const struct norm *s = &w->shape;
    double wide = (double)precision_info[norm_wide(s->precision)].bytes;
    double moments = wide * (double)norm_statistics(s);
    bool batch = s->operation == NORM_BATCH, given = batch || s->pass == NORM_BACKWARD;
    w->arrays.chunks = chunks_of(gpu, s);
    if (!given)
        return STATUS_OK;
    TRY(arena_take(w->tensors.arena, moments, "the means", &w->mean, error));
    TRY(arena_take(w->tensors.arena, moments, "the deviations", &w->inverse, error));
    if (batch)
        TRY(arena_take(w->tensors.arena, moments, "the variances", &w->variance, error));
    return arena_take(w->tensors.arena, 2.0 * wide * (double)s->columns * (double)w->arrays.chunks,
                      "the sums of chunks", &w->partial, error);
}

static void arrays_set(struct norm_work *w)
{
    const struct tensor_work *t = &w->tensors;
    bool kept = w->shape.pass == NORM_TRAINING, backward = w->shape.pass == NORM_BACKWARD;
    w->arrays = (struct norm_arrays){
        .rows = w->shape.rows,
        .columns = w->shape.columns,
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
        .partial = w->partial,
        .chunks = w->arrays.chunks,
    };
}

/* ---- passes ---- */

static enum status step(struct gpu *gpu, const struct norm_work *w, enum norm_step which,
                        const struct norm_arrays *arrays, struct error *error)
{
    return CUDA(kernel_norm_step(w->shape.precision, which, arrays, gpu->stream));
}

/* Of columns, to where `arrays` says. */
static enum status moments(struct gpu *gpu, const struct norm_work *w,
                           const struct norm_arrays *arrays, struct error *error)
{
    TRY(step(gpu, w, NORM_STEP_SUM_MOMENTS, arrays, error));
    return step(gpu, w, NORM_STEP_MOMENTS, arrays, error);
}

static enum status batch_forward(struct gpu *gpu, const struct norm_work *w, struct error *error)
{
    return step(gpu, w, NORM_STEP_APPLY, &w->arrays, error);
}

static enum status batch_training(struct gpu *gpu, const struct norm_work *w, struct error *error)
{
    struct norm_arrays found = w->arrays;
    found.mean_given = found.mean;
    found.inverse_given = found.inverse;
    TRY(moments(gpu, w, &found, error));
    return step(gpu, w, NORM_STEP_APPLY, &found, error);
}

static enum status batch_backward(struct gpu *gpu, const struct norm_work *w, struct error *error)
{
    TRY(step(gpu, w, NORM_STEP_SUM_BATCH, &w->arrays, error));
    TRY(step(gpu, w, NORM_STEP_BATCH_GRADIENTS, &w->arrays, error));
    return step(gpu, w, NORM_STEP_APPLY, &w->arrays, error);
}

/* Training keeps the moments, since there is room for them. */
static enum status layer_forward(struct gpu *gpu, const struct norm_work *w, struct error *error)
{
    return CUDA(kernel_layer_norm(w->shape.precision, &w->arrays, gpu->stream));
}

static enum status layer_backward(struct gpu *gpu, const struct norm_work *w, struct error *error)
{
    TRY(CUDA(kernel_layer_norm(w->shape.precision, &w->arrays, gpu->stream)));
    if (!kernel_layer_norm_sums(w->shape.precision, w->shape.columns))
        TRY(step(gpu, w, NORM_STEP_SUM_LAYER, &w->arrays, error));
    return step(gpu, w, NORM_STEP_LAYER_GRADIENTS, &w->arrays, error);
}

enum status norm_work_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    static enum status (*const passes[2][3])(struct gpu * gpu, const struct norm_work *w,
                                             struct error *error) = {
        [NORM_BATCH] = {batch_forward, batch_training, batch_backward},
        [NORM_LAYER] = {layer_forward, layer_forward, layer_backward},
    };
    const struct norm_work *w = (const struct norm_work *)work;
    return passes[w->shape.operation][w->shape.pass](gpu, w, error);
}

/* Of rows: a forward pass, whose y goes to where dx will be. */
static enum status given_compute(struct gpu *gpu, const struct norm_work *w, struct error *error)
{
    struct norm_arrays arrays = w->arrays;
    arrays.mean = w->mean;
    arrays.inverse = w->inverse;
    arrays.variance = w->variance;
    if (!w->mean)
        return STATUS_OK;
    if (w->shape.operation == NORM_BATCH)
        return moments(gpu, w, &arrays, error);
    arrays.dy = NULL;
    arrays.y = w->arrays.dx;
    arrays.beta = w->arrays.gamma;
    return CUDA(kernel_layer_norm(w->shape.precision, &arrays, gpu->stream));
}

enum status norm_work_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                             struct norm_work *work, struct error *error)
{
    work->shape = norm_from(config);
    const struct tensor_sizes sizes = norm_sizes(&work->shape);
    TRY(tensor_work_create(gpu, config, seed, &sizes, &work->tensors, error));
    TRY(given_create(gpu, work, error));
    arrays_set(work);
    return given_compute(gpu, work, error);
}

void norm_work_clear(struct norm_work *work)
{
    arena_give(work->tensors.arena, work->partial);
    arena_give(work->tensors.arena, work->variance);
    arena_give(work->tensors.arena, work->inverse);
    arena_give(work->tensors.arena, work->mean);
    tensor_work_clear(&work->tensors);
}
