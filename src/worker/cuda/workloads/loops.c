#include "worker/cuda/workloads/workloads.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/check.h"
#include "model/workloads/loop.h"

struct loop_work {
    struct work base;
    struct arena *arena; /* whose memory it has */
    struct loop shape;
    void *x, *y;
    size_t bytes; /* of each */
};

static enum status loop_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct loop_work *l = (const struct loop_work *)work;
    const struct loop *s = &l->shape;
    if (l->shape.shared)
        return CUDA(kernel_shared_loop(s->precision, l->y, l->x, s->tiles, (int)s->tile,
                                       (int)s->steps, gpu->stream));
    return CUDA(
        kernel_compute_loop(s->precision, l->y, l->x, s->tiles, (int)s->steps, gpu->stream));
}

/* All bits set is a NaN in every format. */
static enum status loop_run(struct gpu *gpu, struct work *work, int64_t samples,
                            struct error *error)
{
    const struct loop_work *l = (const struct loop_work *)work;
    (void)samples;
    TRY(CUDA(cudaMemsetAsync(l->y, 0xff, l->bytes, gpu->stream)));
    return loop_iterate(gpu, work, error);
}

static const void *loop_result(const struct work *work, enum tensor tensor)
{
    (void)tensor;
    return ((const struct loop_work *)work)->y;
}

static void loop_release(struct work *work)
{
    struct loop_work *l = (struct loop_work *)work;
    arena_give(l->arena, l->y);
    arena_give(l->arena, l->x);
    free(l);
}

static const struct work_ops loop_ops = {
    .iterate = loop_iterate,
    .run = loop_run,
    .result = loop_result,
    .release = loop_release,
};

/* An even number of elements: fp16 and bf16 come in pairs. */
static enum status tensors_create(struct gpu *gpu, struct loop_work *l, const struct config *config,
                                  uint64_t seed, struct error *error)
{
    int64_t elements = (l->shape.tiles * l->shape.tile + 1) / 2 * 2;
    struct fill fill = config_fill(config, seed, TENSOR_INPUT);
    l->bytes = (size_t)elements * precision_info[l->shape.precision].bytes;
    TRY(arena_take(l->arena, (double)l->bytes, "the input", &l->x, error));
    TRY(arena_take(l->arena, (double)l->bytes, "the output", &l->y, error));
    return CUDA(kernel_fill(l->shape.precision, l->x, elements, fill, 0, gpu->stream));
}

enum status loop_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                         struct work **work, struct record *record, struct error *error)
{
    struct loop shape = loop_from(config);
    if (gpu->chip->vector[shape.precision] == 0.0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "compute capability %d.%d has no %s vector unit", gpu->capability / 10,
                         gpu->capability % 10, precision_info[shape.precision].name);
    struct loop_work *l = calloc(1, sizeof *l);
    if (!l)
        return error_set(error, STATUS_FAILED, "no memory");
    l->base.ops = &loop_ops;
    l->arena = gpu->arena;
    l->base.precision = shape.precision;
    l->shape = shape;
    enum status status = tensors_create(gpu, l, config, seed, error);
    if (status) {
        loop_release(&l->base);
        return status;
    }
    snprintf(record->algorithm, sizeof record->algorithm,
             l->shape.shared ? "shared-memory" : "registers");
    snprintf(record->math, sizeof record->math, "fma");
    record->unit = UNIT_VECTOR;
    record->workspace = 0.0;
    *work = &l->base;
    return STATUS_OK;
}
