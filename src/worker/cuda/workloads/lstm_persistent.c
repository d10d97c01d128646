#include "worker/cuda/workloads/workloads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "model/workloads/lstm.h"
#include "worker/cuda/gpu/check.h"
#include "worker/gpu/arena.h"
#include "worker/gpu/tensor_work.h"

struct lstm_persistent {
    struct tensor_work tensors;
    struct lstm shape;
    void *between[2]; /* outputs of layers below the last one, in turn; NULL: there are none */
};

static void *layer_output(const struct lstm_persistent *l, int64_t layer)
{
    return layer == l->shape.layers - 1 ? l->tensors.result[TENSOR_OUTPUT] : l->between[layer % 2];
}

static const void *layer_weights(const struct lstm_persistent *l, int64_t layer)
{
    const struct lstm *s = &l->shape;
    return (const char *)l->tensors.input[TENSOR_WEIGHT] +
           (size_t)lstm_w_at(s, layer, 0, LSTM_INPUT_MATRIX) * precision_info[s->precision].bytes;
}

static enum status persistent_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct lstm_persistent *l = (const struct lstm_persistent *)work;
    const struct lstm *s = &l->shape;
    for (int64_t layer = 0; layer < s->layers; ++layer) {
        const void *x = layer ? layer_output(l, layer - 1) : l->tensors.input[TENSOR_INPUT];
        TRY(CUDA(kernel_lstm(s, lstm_input_width(s, layer), layer_output(l, layer), x,
                             layer_weights(l, layer), gpu->stream)));
    }
    return STATUS_OK;
}

static void persistent_release(struct work *work)
{
    struct lstm_persistent *l = (struct lstm_persistent *)work;
    tensor_work_clear(&l->tensors);
    for (int i = 0; i < 2; ++i)
        cudaFree(l->between[i]);
    free(l);
}

static const struct work_ops persistent_ops = {
    .iterate = persistent_iterate,
    .run = tensor_work_run,
    .result = tensor_work_result,
    .release = persistent_release,
};

/* Where a block has no room for all units, a cluster of blocks shares them. */
static enum status hidden_check(const struct gpu *gpu, const struct lstm *s, struct error *error)
{
    const int clusters = 90;
    int64_t most = gpu->capability < clusters ? KERNEL_LSTM_BLOCK : KERNEL_LSTM_CLUSTER;
    if (s->hidden > most)
        return error_set(error, STATUS_UNSUPPORTED,
                         "persistent keeps the weights of at most %lld hidden units in registers "
                         "on this device",
                         (long long)most);
    if (s->hidden % KERNEL_LSTM_MULTIPLE != 0 || s->features % KERNEL_LSTM_MULTIPLE != 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "persistent loads %d values at a time: features and hidden must be "
                         "multiples of that",
                         KERNEL_LSTM_MULTIPLE);
    return STATUS_OK;
}

static enum status shape_check(const struct gpu *gpu, const struct lstm *s, struct error *error)
{
    if (s->pass != LSTM_FORWARD)
        return error_set(error, STATUS_UNSUPPORTED,
                         "persistent has the forward pass only; implementation cudnn has the "
                         "backward pass");
    if (s->precision != PRECISION_FP16 && s->precision != PRECISION_BF16)
        return error_set(error, STATUS_UNSUPPORTED,
                         "persistent multiplies on tensor units in fp16 and bf16, not in %s",
                         precision_info[s->precision].name);
    if (s->kind != LSTM_LSTM || s->projection > 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "persistent has the LSTM's cell without a projection; implementation "
                         "cudnn has the others");
    if (strcmp(s->algorithm, "auto") != 0)
        return error_set(error, STATUS_UNSUPPORTED, "algorithm %s is cuDNN's", s->algorithm);
    return hidden_check(gpu, s, error);
}

static enum status tensors_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                                  struct lstm_persistent *l, struct error *error)
{
    const struct lstm *s = &l->shape;
    const struct tensor_sizes sizes = {
        .read = {[TENSOR_INPUT] = lstm_x_size(s), [TENSOR_WEIGHT] = lstm_w_size(s)},
        .written = {[TENSOR_OUTPUT] = lstm_y_size(s)},
    };
    double bytes = (double)lstm_y_size(s) * (double)precision_info[s->precision].bytes;
    TRY(tensor_work_create(gpu, config, seed, &sizes, &l->tensors, error));
    for (int64_t i = 0; i < 2 && i < s->layers - 1; ++i)
        TRY(memory_allocate(bytes, "the layers' outputs", &l->between[i], error));
    return STATUS_OK;
}

static void persistent_describe(const struct lstm_persistent *l, struct record *record)
{
    double bytes =
        (double)lstm_y_size(&l->shape) * (double)precision_info[l->shape.precision].bytes;
    tensor_work_describe("persistent", record);
    snprintf(record->math, sizeof record->math, "tensor-op");
    record->unit = UNIT_TENSOR;
    record->workspace = bytes * ((l->between[0] != NULL) + (l->between[1] != NULL));
}

enum status lstm_persistent_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                    struct work **work, struct record *record, struct error *error)
{
    struct lstm shape = lstm_from(config);
    TRY(shape_check(gpu, &shape, error));
    struct lstm_persistent *l = calloc(1, sizeof *l);
    if (!l)
        return error_set(error, STATUS_FAILED, "no memory");
    l->tensors.base.ops = &persistent_ops;
    l->shape = shape;
    enum status status = tensors_create(gpu, config, seed, l, error);
    if (status) {
        persistent_release(&l->tensors.base);
        return status;
    }
    persistent_describe(l, record);
    *work = &l->tensors.base;
    return STATUS_OK;
}
