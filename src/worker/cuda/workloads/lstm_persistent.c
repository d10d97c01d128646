#include "worker/cuda/workloads/workloads.h"

#include <string.h>

#include "model/workloads/lstm.h"

struct lstm_persistent {
    struct tensor_work tensors;
    struct lstm shape;
};

static size_t y_bytes(const struct lstm *s)
{
    return (size_t)lstm_y_size(s) * precision_info[s->precision].bytes;
}

static enum status persistent_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct lstm_persistent *l = (const struct lstm_persistent *)work;
    const struct lstm *s = &l->shape;
    const char *w = l->tensors.input[TENSOR_WEIGHT];
    const void *x = l->tensors.input[TENSOR_INPUT];
    for (int64_t layer = 0; layer < s->layers; ++layer) {
        void *y = layer == s->layers - 1
                      ? l->tensors.result[TENSOR_OUTPUT]
                      : (char *)l->tensors.intermediate + (size_t)(layer % 2) * y_bytes(s);
        const size_t at = (size_t)lstm_w_at(s, layer, 0, LSTM_INPUT_MATRIX);
        TRY(CUDA(kernel_lstm(s, lstm_input_width(s, layer), y, x,
                             w + at * precision_info[s->precision].bytes, gpu->stream)));
        x = y;
    }
    return STATUS_OK;
}

static enum status persistent_check(const struct gpu *gpu, const struct config *config,
                                    struct error *error)
{
    const struct lstm s = lstm_from(config);
    /* From compute capability 9.0 on, a cluster of blocks can share the units. */
    int64_t most = gpu->capability < 90 ? KERNEL_LSTM_BLOCK : KERNEL_LSTM_CLUSTER;
    if (s.pass != LSTM_FORWARD)
        return error_set(error, STATUS_UNSUPPORTED,
                         "persistent has the forward pass only; implementation cudnn has the "
                         "backward pass");
    if (s.precision != PRECISION_FP16 && s.precision != PRECISION_BF16)
        return error_set(error, STATUS_UNSUPPORTED,
                         "persistent multiplies on tensor units in fp16 and bf16, not in %s",
                         precision_info[s.precision].name);
    if (s.kind != LSTM_LSTM || s.projection > 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "persistent has the LSTM's cell without a projection; implementation "
                         "cudnn has the others");
    if (strcmp(s.algorithm, "auto") != 0)
        return error_set(error, STATUS_UNSUPPORTED, "algorithm %s is cuDNN's", s.algorithm);
    if (s.hidden > most)
        return error_set(error, STATUS_UNSUPPORTED,
                         "persistent keeps the weights of at most %lld hidden units in registers "
                         "on this device",
                         (long long)most);
    if (s.hidden % KERNEL_LSTM_MULTIPLE != 0 || s.features % KERNEL_LSTM_MULTIPLE != 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "persistent loads %d values at a time: features and hidden must be "
                         "multiples of that",
                         KERNEL_LSTM_MULTIPLE);
    return STATUS_OK;
}

/* Layers below the last one store their outputs alternately in two arrays. */
static void persistent_shape(const struct config *config, struct work *work,
                             struct tensors *tensors)
{
    struct lstm_persistent *l = (struct lstm_persistent *)work;
    const struct lstm s = l->shape = lstm_from(config);
    (void)tensors;
    l->tensors.intermediate_bytes = (size_t)(s.layers > 2 ? 2 : s.layers - 1) * y_bytes(&s);
}

static enum status persistent_open(struct gpu *gpu, const struct config *config, struct work *work,
                                   struct record *record, struct error *error)
{
    const struct lstm_persistent *l = (const struct lstm_persistent *)work;
    (void)gpu, (void)config, (void)error;
    tensor_work_describe("persistent", UNIT_TENSOR, (double)l->tensors.intermediate_bytes, record);
    return STATUS_OK;
}

const struct tensor_routine lstm_persistent = {
    .bytes = sizeof(struct lstm_persistent),
    .shape = persistent_shape,
    .check = persistent_check,
    .open = persistent_open,
    .iterate = persistent_iterate,
};
