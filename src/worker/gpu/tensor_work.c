#include "worker/gpu/tensor_work.h"

#include <stdio.h>

#include "worker/gpu/arena.h"

static const char *const tensor_names[TENSOR_COUNT] = {
    [TENSOR_INPUT] = "the input",
    [TENSOR_WEIGHT] = "the weights",
    [TENSOR_OUTPUT] = "the output",
    [TENSOR_BIAS] = "the biases",
};

/* The values are those of the configuration's precision, which a wider type has as well. */
static enum status input_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                                enum precision precision, enum tensor tensor, int64_t size,
                                void **input, struct error *error)
{
    double bytes = (double)size * (double)precision_info[precision].bytes;
    TRY(arena_take(vendor.arena(gpu), bytes, tensor_names[tensor], input, error));
    return vendor.fill(gpu, precision, *input, size, config_fill(config, seed, tensor), error);
}

enum status tensor_work_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                               const struct tensor_sizes *sizes, struct tensor_work *work,
                               struct error *error)
{
    enum precision precision = config_precision(config);
    enum precision wide = precision == PRECISION_FP64 ? PRECISION_FP64 : PRECISION_FP32;
    work->base.precision = precision;
    work->arena = vendor.arena(gpu);
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        work->stored[i] = sizes->wide[i] ? wide : precision;
        work->result_bytes[i] =
            (size_t)sizes->written[i] *
            (sizes->wide[i] ? &precision_info[wide] : precision_result(precision))->bytes;
        if (sizes->read[i] > 0)
            TRY(input_create(gpu, config, seed, work->stored[i], (enum tensor)i, sizes->read[i],
                             &work->input[i], error));
        if (sizes->written[i] > 0)
            TRY(arena_take(vendor.arena(gpu), (double)work->result_bytes[i], tensor_names[i],
                           &work->result[i], error));
    }
    return STATUS_OK;
}

void tensor_work_clear(struct tensor_work *work)
{
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        arena_give(work->arena, work->result[i]);
        arena_give(work->arena, work->input[i]);
    }
}

/* All bits set is a NaN in every format. */
enum status tensor_work_run(struct gpu *gpu, struct work *work, int64_t samples,
                            struct error *error)
{
    const struct tensor_work *t = (const struct tensor_work *)work;
    (void)samples;
    for (int i = 0; i < TENSOR_COUNT; ++i)
        if (t->result[i])
            TRY(vendor.set(gpu, t->result[i], 0xff, t->result_bytes[i], error));
    return work->ops->iterate(gpu, work, error);
}

const void *tensor_work_result(const struct work *work, enum tensor tensor)
{
    return ((const struct tensor_work *)work)->result[tensor];
}

enum precision tensor_work_stored(const struct work *work, enum tensor tensor)
{
    return ((const struct tensor_work *)work)->stored[tensor];
}

void tensor_work_describe(const char *algorithm, struct record *record)
{
    snprintf(record->algorithm, sizeof record->algorithm, "%s", algorithm);
    snprintf(record->math, sizeof record->math, "fma");
    record->unit = UNIT_VECTOR;
    record->workspace = 0.0;
}
