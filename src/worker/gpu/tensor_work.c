#include "worker/gpu/tensor_work.h"

#include <stdio.h>
#include <stdlib.h>

#include "worker/gpu/arena.h"

static const char *const tensor_names[TENSOR_COUNT] = {
    [TENSOR_INPUT] = "the input",
    [TENSOR_WEIGHT] = "the weights",
    [TENSOR_OUTPUT] = "the output",
    [TENSOR_BIAS] = "the biases",
};

/* An input's values are those of the configuration's precision, which a wider type has as well. */
static enum status tensors_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                                  const struct tensor_sizes *sizes, struct tensor_work *work,
                                  struct error *error)
{
    const enum precision precision = config_precision(config);
    const enum precision wide = precision == PRECISION_FP64 ? PRECISION_FP64 : PRECISION_FP32;
    const char *const *names = sizes->names ? sizes->names : tensor_names;
    work->base.precision = precision;
    work->arena = vendor.arena(gpu);
    work->seed = seed;
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        const bool of_results = sizes->written[i] > 0 || i == TENSOR_BIAS;
        work->stored[i] = sizes->wide[i] ? wide
                          : of_results   ? precision_info[precision].result
                                         : precision;
        const size_t element = precision_info[work->stored[i]].bytes;
        const struct fill fill = config_fill(config, seed, (enum tensor)i);
        work->result_bytes[i] = (size_t)sizes->written[i] * element;
        if (sizes->read[i] > 0) {
            TRY(arena_take(work->arena, (double)sizes->read[i] * (double)element, names[i],
                           &work->input[i], error));
            TRY(vendor.fill(gpu, work->stored[i], work->input[i], sizes->read[i], fill, error));
        }
        if (sizes->written[i] > 0)
            TRY(arena_take(work->arena, (double)work->result_bytes[i], names[i], &work->result[i],
                           error));
    }
    work->between_bytes = (size_t)sizes->between;
    return sizes->between > 0.0
               ? arena_take(work->arena, sizes->between, "what its kernels leave each other",
                            &work->between, error)
               : STATUS_OK;
}

/* As struct work_ops says: results and what is between are NaN, which is all bits set in every
 * format, then there is one iteration. */
static enum status tensors_run(struct gpu *gpu, struct work *work, int64_t samples,
                               struct error *error)
{
    const struct tensor_work *t = (const struct tensor_work *)work;
    (void)samples;
    if (t->between)
        TRY(vendor.set(gpu, t->between, 0xff, t->between_bytes, error));
    for (int i = 0; i < TENSOR_COUNT; ++i)
        if (t->result[i])
            TRY(vendor.set(gpu, t->result[i], 0xff, t->result_bytes[i], error));
    return work->ops->iterate(gpu, work, error);
}

static const void *tensors_result(const struct work *work, enum tensor tensor)
{
    return ((const struct tensor_work *)work)->result[tensor];
}

static enum precision tensors_stored(const struct work *work, enum tensor tensor)
{
    return ((const struct tensor_work *)work)->stored[tensor];
}

static void tensors_release(struct work *work)
{
    struct tensor_work *t = (struct tensor_work *)work;
    if (t->way->close)
        t->way->close(work);
    arena_give(t->arena, t->between);
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        arena_give(t->arena, t->result[i]);
        arena_give(t->arena, t->input[i]);
    }
    free(t);
}

enum status tensor_work_prepare(const struct tensor_way *way, struct gpu *gpu,
                                const struct config *config, uint64_t seed, struct work **work,
                                struct record *record, struct error *error)
{
    if (way->check)
        TRY(way->check(gpu, config, error));
    struct tensor_work *t = calloc(1, way->bytes);
    if (!t)
        return error_set(error, STATUS_FAILED, "no memory");
    t->way = way;
    t->ops = (struct work_ops){
        .iterate = way->iterate,
        .run = tensors_run,
        .result = tensors_result,
        .stored = tensors_stored,
        .release = tensors_release,
    };
    t->base.ops = &t->ops;
    if (way->algorithm)
        tensor_work_describe(way->algorithm, UNIT_VECTOR, 0.0, record);
    const struct tensor_sizes sizes = way->describe(config, &t->base);
    enum status status = tensors_create(gpu, config, seed, &sizes, t, error);
    if (status == STATUS_OK && way->open)
        status = way->open(gpu, config, &t->base, record, error);
    if (status) {
        tensors_release(&t->base);
        return status;
    }
    *work = &t->base;
    return STATUS_OK;
}

void tensor_work_describe(const char *algorithm, enum unit unit, double workspace,
                          struct record *record)
{
    snprintf(record->algorithm, sizeof record->algorithm, "%s", algorithm);
    snprintf(record->math, sizeof record->math, "%s", unit == UNIT_TENSOR ? "tensor-op" : "fma");
    record->unit = unit;
    record->workspace = workspace;
}
