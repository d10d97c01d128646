#include "worker/gpu/tensor_work.h"

#include <stdio.h>
#include <stdlib.h>

#include "worker/gpu/arena.h"

static const char *const tensor_names[TENSOR_COUNT] = {
    [TENSOR_INPUT] = "the input",
    [TENSOR_WEIGHT] = "the weights",
    [TENSOR_OUTPUT] = "the output",
    [TENSOR_BIAS] = "the biases",
    [TENSOR_WEIGHT_UPDATED] = "the updated weights",
    [TENSOR_BIAS_UPDATED] = "the updated biases",
    [TENSOR_VALUE] = "the values",
};

/* Inputs have values of the configuration's precision, even if they are stored in a wider type. */
static enum status tensors_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                                  const struct tensors *tensors, struct tensor_work *work,
                                  struct error *error)
{
    const enum precision precision = config_precision(config);
    work->base.precision = precision;
    work->arena = vendor_arena(gpu);
    work->seed = seed;
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        const int64_t read = (int64_t)tensors->read[i];
        work->stored[i] = tensor_stored(tensors, (enum tensor)i, precision);
        const size_t element = precision_info[work->stored[i]].bytes;
        const struct fill fill = config_fill(config, seed, (enum tensor)i);
        work->result_bytes[i] = (size_t)tensors->written[i] * element;
        if (read > 0) {
            TRY(arena_allocate(work->arena, (double)read * (double)element, tensor_names[i],
                               &work->input[i], error));
            TRY(vendor_fill(gpu, work->stored[i], work->input[i], read, fill, error));
        }
        if (work->result_bytes[i] > 0)
            TRY(arena_allocate(work->arena, (double)work->result_bytes[i], tensor_names[i],
                               &work->result[i], error));
    }
    return work->intermediate_bytes > 0
               ? arena_allocate(work->arena, (double)work->intermediate_bytes,
                                "data between its kernels", &work->intermediate, error)
               : STATUS_OK;
}

/* Runs an iteration, with NaN in results and intermediate data: all bits set, in every format. */
static enum status tensors_run(struct gpu *gpu, struct work *work, int64_t samples,
                               struct error *error)
{
    const struct tensor_work *t = (const struct tensor_work *)work;
    (void)samples;
    if (t->intermediate)
        TRY(vendor_set(gpu, t->intermediate, 0xff, t->intermediate_bytes, error));
    for (int i = 0; i < TENSOR_COUNT; ++i)
        if (t->result[i])
            TRY(vendor_set(gpu, t->result[i], 0xff, t->result_bytes[i], error));
    return work->ops->iterate(gpu, work, error);
}

static const void *tensors_result(const struct work *work, enum tensor tensor)
{
    return ((const struct tensor_work *)work)->result[tensor];
}

static size_t tensors_bytes(const struct work *work, enum tensor tensor)
{
    return ((const struct tensor_work *)work)->result_bytes[tensor];
}

static enum precision tensors_stored(const struct work *work, enum tensor tensor)
{
    return ((const struct tensor_work *)work)->stored[tensor];
}

static void tensors_release(struct work *work)
{
    struct tensor_work *t = (struct tensor_work *)work;
    if (t->routine->close)
        t->routine->close(work);
    arena_free(t->arena, t->intermediate);
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        arena_free(t->arena, t->result[i]);
        arena_free(t->arena, t->input[i]);
    }
    free(t);
}

enum status tensor_work_prepare(const struct tensor_routine *routine, struct gpu *gpu,
                                const struct config *config, uint64_t seed, struct work **work,
                                struct record *record, struct error *error)
{
    if (routine->check)
        TRY(routine->check(gpu, config, error));
    struct tensor_work *t = calloc(1, routine->bytes);
    if (!t)
        return error_set(error, STATUS_FAILED, "no memory");
    t->routine = routine;
    t->ops = (struct work_ops){
        .iterate = routine->iterate,
        .run = tensors_run,
        .result = tensors_result,
        .bytes = tensors_bytes,
        .stored = tensors_stored,
        .release = tensors_release,
    };
    t->base.ops = &t->ops;
    if (routine->algorithm)
        tensor_work_describe(routine->algorithm, routine->unit, 0.0, record);
    struct tensors tensors = config->workload->tensors(config);
    routine->shape(config, &t->base, &tensors);
    enum status status = tensors_create(gpu, config, seed, &tensors, t, error);
    if (status == STATUS_OK && routine->open)
        status = routine->open(gpu, config, &t->base, record, error);
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

enum status count_check(const char *counter, const char *what, double count, double most,
                        const char *instead, struct error *error)
{
    return count <= most ? STATUS_OK
                         : error_set(error, STATUS_UNSUPPORTED, "%.4g %s: %s to %.0f; %s", count,
                                     what, counter, most, instead);
}
