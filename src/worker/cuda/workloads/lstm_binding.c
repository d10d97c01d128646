#include "worker/cuda/workloads/lstm_binding.h"

#include <stdlib.h>

#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/libraries.h"

/* All sequences have one length, so packed and padded data lie alike, [sequence][batch][width]. cuDNN
 * has kernels for one of them alone, and may add some for padding. */
#define PACKED CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, CUDNN_RNN_PADDED_IO_DISABLED
#define PADDED CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, CUDNN_RNN_PADDED_IO_ENABLED
static const struct {
    cudnnRNNAlgo_t number;
    cudnnRNNDataLayout_t layout;
    uint32_t flags;
} algorithms[LSTM_ALGORITHMS] = {
    {CUDNN_RNN_ALGO_STANDARD, PACKED},
    {CUDNN_RNN_ALGO_PERSIST_STATIC, PACKED},
    {CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, PACKED},
    {CUDNN_RNN_ALGO_STANDARD, PADDED},
    {CUDNN_RNN_ALGO_PERSIST_STATIC, PADDED},
    {CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, PADDED},
    {CUDNN_RNN_ALGO_PERSIST_DYNAMIC, PACKED},
    {CUDNN_RNN_ALGO_PERSIST_DYNAMIC, PADDED},
};

const char *const lstm_algorithm_name[LSTM_ALGORITHMS] = {
    "standard",        "persist-static",         "persist-static-small-h",
    "standard padded", "persist-static padded",  "persist-static-small-h padded",
    "persist-dynamic", "persist-dynamic padded",
};

bool lstm_algorithm_is_compiled(int algorithm)
{
    return algorithms[algorithm].number == CUDNN_RNN_ALGO_PERSIST_DYNAMIC;
}

bool lstm_algorithm_is_small(int algorithm)
{
    return algorithms[algorithm].number == CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H;
}

int lstm_algorithm_packed(int algorithm)
{
    int packed = 0;
    while (algorithms[packed].number != algorithms[algorithm].number)
        ++packed;
    return packed;
}

static const cudnnRNNMode_t modes[LSTM_KINDS] = {
    [LSTM_LSTM] = CUDNN_LSTM,
    [LSTM_GRU] = CUDNN_GRU,
    [LSTM_RELU] = CUDNN_RNN_RELU,
    [LSTM_TANH] = CUDNN_RNN_TANH,
};

void lstm_binding_release(struct arena *arena, struct lstm_binding *binding)
{
    arena_give(arena, binding->reserve);
    arena_give(arena, binding->workspace);
    arena_give(arena, binding->dw);
    arena_give(arena, binding->w);
    lstm_weights_clear(&binding->weights);
    if (binding->rnn)
        cudnnDestroyRNNDescriptor(binding->rnn);
    if (binding->y_descriptor)
        cudnnDestroyRNNDataDescriptor(binding->y_descriptor);
    if (binding->x_descriptor)
        cudnnDestroyRNNDataDescriptor(binding->x_descriptor);
    *binding = (struct lstm_binding){0};
}

static enum status data_describe(const struct lstm_setting *setting, int64_t width,
                                 cudnnRNNDataLayout_t layout, cudnnRNNDataDescriptor_t *descriptor,
                                 struct error *error)
{
    const struct lstm *s = setting->shape;
    int *lengths = malloc((size_t)s->batch * sizeof *lengths);
    if (!lengths)
        return error_set(error, STATUS_FAILED, "no memory for %lld lengths", (long long)s->batch);
    for (int64_t i = 0; i < s->batch; ++i)
        lengths[i] = (int)s->sequence;
    enum status status = CUDNN(cudnnCreateRNNDataDescriptor(descriptor));
    if (status == STATUS_OK)
        status = CUDNN(cudnnSetRNNDataDescriptor(*descriptor, setting->format->data, layout,
                                                 (int)s->sequence, (int)s->batch, (int)width,
                                                 lengths, NULL));
    free(lengths);
    return status;
}

/* Each gate has two biases for cuDNN. Those that lstm_weights does not name are zero, so they add
 * nothing; but where there is one alone, cuDNN refuses its persistent kernels, and a GRU needs both. */
static enum status rnn_create(const struct lstm_setting *setting, int algorithm,
                              struct lstm_binding *b, struct error *error)
{
    const struct lstm *s = setting->shape;
    const struct lstm_format *format = setting->format;
    TRY(CUDNN(cudnnCreateRNNDescriptor(&b->rnn)));
    TRY(CUDNN(cudnnSetRNNDescriptor_v8(
        b->rnn, algorithms[algorithm].number, modes[s->kind], CUDNN_RNN_DOUBLE_BIAS,
        s->directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
        format->data, format->compute, format->math, (int32_t)s->features, (int32_t)s->hidden,
        (int32_t)s->output, (int32_t)s->layers, setting->dropout, algorithms[algorithm].flags)));
    if (algorithms[algorithm].number == CUDNN_RNN_ALGO_PERSIST_DYNAMIC)
        TRY(CUDNN(cudnnBuildRNNDynamic(setting->gpu->cudnn, b->rnn, (int)s->batch)));
    return STATUS_OK;
}

static enum status memory_take(const struct lstm_setting *setting, struct lstm_binding *b,
                               struct error *error)
{
    struct arena *arena = setting->gpu->arena;
    bool backward = setting->shape->pass == LSTM_BACKWARD;
    cudnnForwardMode_t mode = backward ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
    TRY(CUDNN(cudnnGetRNNTempSpaceSizes(setting->gpu->cudnn, b->rnn, mode, b->x_descriptor,
                                        &b->workspace_bytes, &b->reserve_bytes)));
    TRY(CUDNN(cudnnGetRNNWeightSpaceSize(setting->gpu->cudnn, b->rnn, &b->w_bytes)));
    TRY(arena_take(arena, (double)b->w_bytes, "the weights", &b->w, error));
    if (backward)
        TRY(arena_take(arena, (double)b->w_bytes, "the weights' gradient", &b->dw, error));
    TRY(arena_take(arena, (double)b->workspace_bytes, "the workspace", &b->workspace, error));
    return arena_take(arena, (double)b->reserve_bytes, "the reserve space", &b->reserve, error);
}

static enum status everything_build(const struct lstm_setting *setting, int algorithm,
                                    struct lstm_binding *b, struct error *error)
{
    const struct lstm *s = setting->shape;
    cudnnRNNDataLayout_t layout = algorithms[algorithm].layout;
    TRY(data_describe(setting, s->features, layout, &b->x_descriptor, error));
    TRY(data_describe(setting, s->output * s->directions, layout, &b->y_descriptor, error));
    TRY(rnn_create(setting, algorithm, b, error));
    TRY(memory_take(setting, b, error));
    TRY(lstm_weights_map(setting->gpu, s, b->rnn, b->w, b->w_bytes, &b->weights, error));
    return lstm_weights_fill(setting->gpu, &b->weights, s->precision, setting->fill, b->w,
                             b->w_bytes, error);
}

enum status lstm_binding_build(const struct lstm_setting *setting, int algorithm,
                               struct lstm_binding *binding, struct error *error)
{
    enum status status = everything_build(setting, algorithm, binding, error);
    if (status)
        lstm_binding_release(setting->gpu->arena, binding);
    else
        binding->built = true;
    return status;
}
