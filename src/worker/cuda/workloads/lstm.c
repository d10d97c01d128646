#include "worker/cuda/workloads/lstm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/arena.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/libraries.h"
#include "model/workloads/lstm.h"
#include "worker/cuda/workloads/search.h"

/* All sequences have one length, so packed and padded data lie alike, [sequence][batch][width]. cuDNN
 * has kernels for one of them alone, and may add some for padding. */
#define PACKED CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, CUDNN_RNN_PADDED_IO_DISABLED
#define PADDED CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, CUDNN_RNN_PADDED_IO_ENABLED
static const struct {
    const char *name;
    cudnnRNNAlgo_t number;
    cudnnRNNDataLayout_t layout;
    uint32_t flags;
} algorithms[] = {
    {"standard", CUDNN_RNN_ALGO_STANDARD, PACKED},
    {"persist-static", CUDNN_RNN_ALGO_PERSIST_STATIC, PACKED},
    {"persist-dynamic", CUDNN_RNN_ALGO_PERSIST_DYNAMIC, PACKED},
    {"persist-static-small-h", CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, PACKED},
    {"standard padded", CUDNN_RNN_ALGO_STANDARD, PADDED},
    {"persist-static padded", CUDNN_RNN_ALGO_PERSIST_STATIC, PADDED},
    {"persist-dynamic padded", CUDNN_RNN_ALGO_PERSIST_DYNAMIC, PADDED},
    {"persist-static-small-h padded", CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, PADDED},
};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

static const struct format {
    bool offered;
    cudnnDataType_t data, compute;
    cudnnMathType_t math;
    enum unit unit;
} formats[PRECISION_COUNT] = {
    [PRECISION_FP32] = {true, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, UNIT_VECTOR},
    [PRECISION_FP16] = {true, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, UNIT_TENSOR},
};

/* cuDNN numbers the matrices of a cell 0 to 3 for the input and 4 to 7 for the recurrent gates, in
 * the canonical order; a bias belongs to each of the first four. */
enum { GATES = 4 };

/* A piece of the canonical w that is also contiguous in cuDNN's weight space, in elements. */
struct segment {
    int64_t begin, length; /* canonical */
    int64_t at;            /* in the weight space */
};

/* What belongs to one algorithm; owned. */
struct binding {
    bool built;
    cudnnRNNDataDescriptor_t x_descriptor, y_descriptor;
    cudnnRNNDescriptor_t rnn;
    void *w, *dw, *workspace, *reserve;
    size_t w_bytes, workspace_bytes, reserve_bytes;
    struct segment *segments; /* ascending */
    size_t segment_count;
};

struct lstm_work {
    struct work base;
    struct lstm shape;
    const struct format *format;
    struct config config;
    uint64_t seed;
    cudnnDropoutDescriptor_t dropout;
    cudnnTensorDescriptor_t state_descriptor;
    struct arena *arena; /* whose memory it has */
    void *x, *y;
    void *dx, *dy; /* backward only */
    struct binding bindings[ALGORITHMS], *bound;
};

static bool is_backward(const struct lstm_work *l)
{
    return l->shape.pass == LSTM_BACKWARD;
}

/* ---- work_ops ---- */

/* The states before the first and after the last step are zero and not wanted. The lengths of the
 * sequences are in the data descriptors; cuDNN 8.9.1 and later wants no copy of them on the device.
 */
static enum status forward(struct gpu *gpu, struct lstm_work *l, cudnnForwardMode_t mode,
                           struct error *error)
{
    return CUDNN(cudnnRNNForward(gpu->cudnn, l->bound->rnn, mode, NULL, l->bound->x_descriptor,
                                 l->x, l->bound->y_descriptor, l->y, l->state_descriptor, NULL,
                                 NULL, l->state_descriptor, NULL, NULL, l->bound->w_bytes,
                                 l->bound->w, l->bound->workspace_bytes, l->bound->workspace,
                                 l->bound->reserve_bytes, l->bound->reserve));
}

static enum status forward_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    return forward(gpu, (struct lstm_work *)work, CUDNN_FWD_MODE_INFERENCE, error);
}

static enum status backward_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    TRY(CUDNN(cudnnRNNBackwardData_v8(
        gpu->cudnn, l->bound->rnn, NULL, l->bound->y_descriptor, l->y, l->dy,
        l->bound->x_descriptor, l->dx, l->state_descriptor, NULL, NULL, NULL, l->state_descriptor,
        NULL, NULL, NULL, l->bound->w_bytes, l->bound->w, l->bound->workspace_bytes,
        l->bound->workspace, l->bound->reserve_bytes, l->bound->reserve)));
    return CUDNN(cudnnRNNBackwardWeights_v8(
        gpu->cudnn, l->bound->rnn, CUDNN_WGRAD_MODE_ADD, NULL, l->bound->x_descriptor, l->x,
        l->state_descriptor, NULL, l->bound->y_descriptor, l->y, l->bound->w_bytes, l->bound->dw,
        l->bound->workspace_bytes, l->bound->workspace, l->bound->reserve_bytes,
        l->bound->reserve));
}

/* Makes each repetition work on the same numbers. The data gradient overwrites the reserve space that
 * the training forward pass has left, so that pass runs again. The weight gradient is added to what is
 * there, so that is set to zero. */
static enum status backward_reset(struct gpu *gpu, struct work *work, struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    TRY(forward(gpu, l, CUDNN_FWD_MODE_TRAINING, error));
    return CUDA(cudaMemsetAsync(l->bound->dw, 0, l->bound->w_bytes, gpu->stream));
}

static size_t element_bytes(const struct lstm_work *l)
{
    return precision_info[l->shape.precision].bytes;
}

/* All bits set is a NaN in every format. */
static enum status forward_run(struct gpu *gpu, struct work *work, int64_t samples,
                               struct error *error)
{
    (void)samples;
    struct lstm_work *l = (struct lstm_work *)work;
    size_t bytes = (size_t)lstm_y_size(&l->shape) * element_bytes(l);
    TRY(CUDA(cudaMemsetAsync(l->y, 0xff, bytes, gpu->stream)));
    return forward_iterate(gpu, work, error);
}

static enum status gradient_fill(struct gpu *gpu, struct lstm_work *l, struct error *error)
{
    struct fill fill = config_fill(&l->config, l->seed, TENSOR_OUTPUT);
    return CUDA(
        kernel_fill(l->shape.precision, l->dy, lstm_y_size(&l->shape), fill, 0, gpu->stream));
}

static enum status backward_run(struct gpu *gpu, struct work *work, int64_t samples,
                                struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    const struct lstm *s = &l->shape;
    size_t row = (size_t)(s->hidden * s->directions) * element_bytes(l);
    size_t kept = (size_t)samples * row, step = (size_t)s->batch * row;
    TRY(CUDA(cudaMemsetAsync(l->dx, 0xff, (size_t)lstm_x_size(s) * element_bytes(l), gpu->stream)));
    if (samples < s->batch)
        TRY(CUDA(cudaMemset2DAsync((char *)l->dy + kept, step, 0, step - kept, (size_t)s->sequence,
                                   gpu->stream)));
    TRY(backward_reset(gpu, work, error));
    TRY(backward_iterate(gpu, work, error));
    return gradient_fill(gpu, l, error);
}

static const void *lstm_result(const struct work *work, enum tensor tensor)
{
    const struct lstm_work *l = (const struct lstm_work *)work;
    const void *const memory[TENSOR_COUNT] = {
        [TENSOR_INPUT] = l->dx, [TENSOR_WEIGHT] = l->bound->dw, [TENSOR_OUTPUT] = l->y};
    return memory[tensor];
}

static int segment_compare(const void *key, const void *element)
{
    int64_t offset = *(const int64_t *)key;
    const struct segment *segment = element;
    return offset < segment->begin ? -1 : offset >= segment->begin + segment->length;
}

static int64_t lstm_element(const struct work *work, enum tensor tensor, int64_t offset)
{
    const struct lstm_work *l = (const struct lstm_work *)work;
    if (tensor != TENSOR_WEIGHT)
        return offset;
    const struct segment *segment = bsearch(&offset, l->bound->segments, l->bound->segment_count,
                                            sizeof *l->bound->segments, segment_compare);
    return segment->at + (offset - segment->begin);
}

static void binding_release(struct arena *arena, struct binding *binding)
{
    arena_give(arena, binding->reserve);
    arena_give(arena, binding->workspace);
    arena_give(arena, binding->dw);
    arena_give(arena, binding->w);
    free(binding->segments);
    if (binding->rnn)
        cudnnDestroyRNNDescriptor(binding->rnn);
    if (binding->y_descriptor)
        cudnnDestroyRNNDataDescriptor(binding->y_descriptor);
    if (binding->x_descriptor)
        cudnnDestroyRNNDataDescriptor(binding->x_descriptor);
    *binding = (struct binding){0};
}

static void lstm_release(struct work *work)
{
    struct lstm_work *l = (struct lstm_work *)work;
    for (int i = 0; i < ALGORITHMS; ++i)
        binding_release(l->arena, &l->bindings[i]);
    arena_give(l->arena, l->dy);
    arena_give(l->arena, l->dx);
    arena_give(l->arena, l->y);
    arena_give(l->arena, l->x);
    if (l->state_descriptor)
        cudnnDestroyTensorDescriptor(l->state_descriptor);
    if (l->dropout)
        cudnnDestroyDropoutDescriptor(l->dropout);
    free(l);
}

static const struct work_ops pass_ops[] = {
    [LSTM_FORWARD] = {.iterate = forward_iterate,
                      .run = forward_run,
                      .result = lstm_result,
                      .element = lstm_element,
                      .release = lstm_release},
    [LSTM_BACKWARD] = {.reset = backward_reset,
                       .iterate = backward_iterate,
                       .run = backward_run,
                       .result = lstm_result,
                       .element = lstm_element,
                       .release = lstm_release},
};

/* ---- weights ---- */

/* Elements of a tensor that cuDNN describes; it calls matrices 1 x rows x columns. */
static enum status descriptor_size(cudnnTensorDescriptor_t descriptor, int64_t *size,
                                   struct error *error)
{
    enum { DIMENSIONS_MAX = 8 };
    cudnnDataType_t type;
    int count, dimensions[DIMENSIONS_MAX], strides[DIMENSIONS_MAX];
    TRY(CUDNN(cudnnGetTensorNdDescriptor(descriptor, DIMENSIONS_MAX, &type, &count, dimensions,
                                         strides)));
    *size = 1;
    for (int i = 0; i < count; ++i)
        *size *= dimensions[i];
    return STATUS_OK;
}

static enum status segment_add(struct lstm_work *l, int64_t begin, int64_t length,
                               cudnnTensorDescriptor_t descriptor, const void *address,
                               struct error *error)
{
    int64_t size;
    TRY(descriptor_size(descriptor, &size, error));
    if (!address || size != length)
        return error_set(error, STATUS_FAILED,
                         "cuDNN's weights are laid out in a way not known here");
    int64_t at = ((const char *)address - (const char *)l->bound->w) / (int64_t)element_bytes(l);
    l->bound->segments[l->bound->segment_count++] = (struct segment){begin, length, at};
    return STATUS_OK;
}

static enum status cell_map(struct gpu *gpu, struct lstm_work *l, int64_t layer, int64_t direction,
                            enum lstm_part part, cudnnTensorDescriptor_t matrix,
                            cudnnTensorDescriptor_t bias, struct error *error)
{
    const struct lstm *s = &l->shape;
    int64_t width = part == LSTM_INPUT_MATRIX ? lstm_input_width(s, layer)
                    : part == LSTM_BIAS       ? 1
                                              : s->hidden;
    int64_t begin = lstm_w_at(s, layer, direction, part), length = s->hidden * width;
    int first = part == LSTM_RECURRENT_MATRIX ? GATES : 0;
    for (int gate = 0; gate < GATES; ++gate) {
        void *matrix_at = NULL, *bias_at = NULL;
        TRY(CUDNN(cudnnGetRNNWeightParams(
            gpu->cudnn, l->bound->rnn, (int32_t)(layer * s->directions + direction),
            l->bound->w_bytes, l->bound->w, first + gate, matrix, &matrix_at, bias, &bias_at)));
        TRY(segment_add(l, begin + gate * length, length, part == LSTM_BIAS ? bias : matrix,
                        part == LSTM_BIAS ? bias_at : matrix_at, error));
    }
    return STATUS_OK;
}

static enum status segments_map(struct gpu *gpu, struct lstm_work *l,
                                cudnnTensorDescriptor_t matrix, cudnnTensorDescriptor_t bias,
                                struct error *error)
{
    static const enum lstm_part parts[] = {LSTM_INPUT_MATRIX, LSTM_RECURRENT_MATRIX, LSTM_BIAS};
    for (int64_t layer = 0; layer < l->shape.layers; ++layer)
        for (int64_t direction = 0; direction < l->shape.directions; ++direction)
            for (int part = 0; part < 3; ++part)
                TRY(cell_map(gpu, l, layer, direction, parts[part], matrix, bias, error));
    return STATUS_OK;
}

static enum status weights_map(struct gpu *gpu, struct lstm_work *l, struct error *error)
{
    cudnnTensorDescriptor_t matrix = NULL, bias = NULL;
    size_t count = (size_t)(l->shape.layers * l->shape.directions) * 3 * GATES;
    l->bound->segments = calloc(count, sizeof *l->bound->segments);
    if (!l->bound->segments)
        return error_set(error, STATUS_FAILED, "no memory for %zu weight segments", count);
    enum status status = CUDNN(cudnnCreateTensorDescriptor(&matrix));
    if (status == STATUS_OK)
        status = CUDNN(cudnnCreateTensorDescriptor(&bias));
    if (status == STATUS_OK)
        status = segments_map(gpu, l, matrix, bias, error);
    if (bias)
        cudnnDestroyTensorDescriptor(bias);
    if (matrix)
        cudnnDestroyTensorDescriptor(matrix);
    return status;
}

static enum status weights_fill(struct gpu *gpu, struct lstm_work *l, struct error *error)
{
    struct fill fill = config_fill(&l->config, l->seed, TENSOR_WEIGHT);
    TRY(CUDA(cudaMemsetAsync(l->bound->w, 0, l->bound->w_bytes, gpu->stream)));
    for (size_t i = 0; i < l->bound->segment_count; ++i) {
        const struct segment *segment = &l->bound->segments[i];
        void *address = (char *)l->bound->w + segment->at * (int64_t)element_bytes(l);
        TRY(CUDA(kernel_fill(l->shape.precision, address, segment->length, fill, segment->begin,
                             gpu->stream)));
    }
    return STATUS_OK;
}

/* ---- preparation ---- */

static enum status data_describe(const struct lstm_work *l, int64_t width,
                                 cudnnRNNDataLayout_t layout, cudnnRNNDataDescriptor_t *descriptor,
                                 struct error *error)
{
    const struct lstm *s = &l->shape;
    int *lengths = malloc((size_t)s->batch * sizeof *lengths);
    if (!lengths)
        return error_set(error, STATUS_FAILED, "no memory for %lld lengths", (long long)s->batch);
    for (int64_t i = 0; i < s->batch; ++i)
        lengths[i] = (int)s->sequence;
    enum status status = CUDNN(cudnnCreateRNNDataDescriptor(descriptor));
    if (status == STATUS_OK)
        status =
            CUDNN(cudnnSetRNNDataDescriptor(*descriptor, l->format->data, layout, (int)s->sequence,
                                            (int)s->batch, (int)width, lengths, NULL));
    free(lengths);
    return status;
}

/* Each gate has two biases for cuDNN. The second one is zero, so this is the LSTM of one bias; but where
 * there is one alone, cuDNN refuses its persistent kernels. */
static enum status rnn_create(struct gpu *gpu, struct lstm_work *l, int candidate,
                              struct error *error)
{
    const struct lstm *s = &l->shape;
    TRY(CUDNN(cudnnCreateRNNDescriptor(&l->bound->rnn)));
    TRY(CUDNN(cudnnSetRNNDescriptor_v8(
        l->bound->rnn, algorithms[candidate].number, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
        s->directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
        l->format->data, l->format->compute, l->format->math, (int32_t)s->features,
        (int32_t)s->hidden, (int32_t)s->hidden, (int32_t)s->layers, l->dropout,
        algorithms[candidate].flags)));
    if (algorithms[candidate].number == CUDNN_RNN_ALGO_PERSIST_DYNAMIC)
        TRY(CUDNN(cudnnBuildRNNDynamic(gpu->cudnn, l->bound->rnn, (int)s->batch)));
    return STATUS_OK;
}

static enum status binding_build(struct gpu *gpu, struct lstm_work *l, int candidate,
                                 struct error *error)
{
    const struct lstm *s = &l->shape;
    struct binding *b = l->bound;
    cudnnRNNDataLayout_t layout = algorithms[candidate].layout;
    cudnnForwardMode_t mode = is_backward(l) ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
    TRY(data_describe(l, s->features, layout, &b->x_descriptor, error));
    TRY(data_describe(l, s->hidden * s->directions, layout, &b->y_descriptor, error));
    TRY(rnn_create(gpu, l, candidate, error));
    TRY(CUDNN(cudnnGetRNNTempSpaceSizes(gpu->cudnn, b->rnn, mode, b->x_descriptor,
                                        &b->workspace_bytes, &b->reserve_bytes)));
    TRY(CUDNN(cudnnGetRNNWeightSpaceSize(gpu->cudnn, b->rnn, &b->w_bytes)));
    TRY(arena_take(l->arena, (double)b->w_bytes, "the weights", &b->w, error));
    if (is_backward(l))
        TRY(arena_take(l->arena, (double)b->w_bytes, "the weights' gradient", &b->dw, error));
    TRY(arena_take(l->arena, (double)b->workspace_bytes, "the workspace", &b->workspace, error));
    TRY(arena_take(l->arena, (double)b->reserve_bytes, "the reserve space", &b->reserve, error));
    TRY(weights_map(gpu, l, error));
    return weights_fill(gpu, l, error);
}

/* What was built stays, because the search binds in turn. */
static enum status algorithm_bind(struct gpu *gpu, struct work *work, int candidate,
                                  struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    l->bound = &l->bindings[candidate];
    if (l->bound->built)
        return STATUS_OK;
    enum status status = binding_build(gpu, l, candidate, error);
    if (status)
        binding_release(l->arena, l->bound);
    else
        l->bound->built = true;
    return status;
}

static void others_release(struct lstm_work *l)
{
    for (int i = 0; i < ALGORITHMS; ++i)
        if (&l->bindings[i] != l->bound)
            binding_release(l->arena, &l->bindings[i]);
}

static enum status descriptors_create(struct gpu *gpu, struct lstm_work *l, struct error *error)
{
    const struct lstm *s = &l->shape;
    int dimensions[3] = {(int)(s->layers * s->directions), (int)s->batch, (int)s->hidden};
    int strides[3] = {dimensions[1] * dimensions[2], dimensions[2], 1};
    TRY(CUDNN(cudnnCreateDropoutDescriptor(&l->dropout)));
    TRY(CUDNN(cudnnSetDropoutDescriptor(l->dropout, gpu->cudnn, 0.0f, NULL, 0, 0)));
    TRY(CUDNN(cudnnCreateTensorDescriptor(&l->state_descriptor)));
    return CUDNN(
        cudnnSetTensorNdDescriptor(l->state_descriptor, l->format->data, 3, dimensions, strides));
}

static enum status tensors_create(struct gpu *gpu, struct lstm_work *l, struct error *error)
{
    double x_bytes = (double)lstm_x_size(&l->shape) * (double)element_bytes(l);
    double y_bytes = (double)lstm_y_size(&l->shape) * (double)element_bytes(l);
    struct fill fill = config_fill(&l->config, l->seed, TENSOR_INPUT);
    TRY(arena_take(l->arena, x_bytes, "the input", &l->x, error));
    TRY(arena_take(l->arena, y_bytes, "the output", &l->y, error));
    TRY(CUDA(kernel_fill(l->shape.precision, l->x, lstm_x_size(&l->shape), fill, 0, gpu->stream)));
    if (!is_backward(l))
        return STATUS_OK;
    TRY(arena_take(l->arena, x_bytes, "the input's gradient", &l->dx, error));
    TRY(arena_take(l->arena, y_bytes, "the output's gradient", &l->dy, error));
    return gradient_fill(gpu, l, error);
}

/* A named algorithm is run once here, because cuDNN may refuse it only when it runs. */
static enum status algorithm_by_name(struct gpu *gpu, struct lstm_work *l, int *chosen,
                                     struct error *error)
{
    const struct work_ops *ops = l->base.ops;
    int candidate = 0;
    while (candidate < ALGORITHMS && strcmp(algorithms[candidate].name, l->shape.algorithm) != 0)
        ++candidate;
    if (candidate == ALGORITHMS)
        return error_set(error, STATUS_UNSUPPORTED, "cuDNN's LSTM has no algorithm %s",
                         l->shape.algorithm);
    enum status status = algorithm_bind(gpu, &l->base, candidate, error);
    if (status == STATUS_OK && ops->reset)
        status = ops->reset(gpu, &l->base, error);
    if (status == STATUS_OK)
        status = ops->iterate(gpu, &l->base, error);
    if (status == STATUS_OK)
        status = CUDA(cudaStreamSynchronize(gpu->stream));
    if (status == STATUS_OK) {
        *chosen = candidate;
        return STATUS_OK;
    }
    error_prefix(error, "algorithm %s", l->shape.algorithm);
    return status == STATUS_FAILED ? STATUS_UNSUPPORTED : status;
}

static const char *algorithm_name(const struct work *work, int candidate)
{
    (void)work;
    return algorithms[candidate].name;
}

static enum status work_prepare(struct gpu *gpu, struct lstm_work *l, int *chosen,
                                struct record *record, struct error *error)
{
    TRY(descriptors_create(gpu, l, error));
    TRY(tensors_create(gpu, l, error));
    if (strcmp(l->shape.algorithm, "auto") != 0)
        return algorithm_by_name(gpu, l, chosen, error);
    const struct search search = {
        .gpu = gpu,
        .work = &l->base,
        .cold = config_cold(&l->config),
        .count = ALGORITHMS,
        .ordered = ALGORITHMS,
        .bind = algorithm_bind,
        .name = algorithm_name,
    };
    TRY(search_run(&search, chosen, record, error));
    others_release(l);
    return STATUS_OK;
}

enum status lstm_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                         struct work **work, struct record *record, struct error *error)
{
    struct lstm shape = lstm_from(config);
    const struct format *format = &formats[shape.precision];
    if (!format->offered)
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuDNN's LSTM is measured in fp32 and fp16, not in %s",
                         precision_info[shape.precision].name);
    struct lstm_work *l = calloc(1, sizeof *l);
    if (!l)
        return error_set(error, STATUS_FAILED, "no memory");
    l->base.ops = &pass_ops[shape.pass];
    l->arena = gpu->arena;
    l->base.precision = shape.precision;
    l->shape = shape;
    l->format = format;
    l->config = *config;
    l->seed = seed;
    int chosen;
    enum status status = work_prepare(gpu, l, &chosen, record, error);
    if (status) {
        lstm_release(&l->base);
        return status;
    }
    snprintf(record->algorithm, sizeof record->algorithm, "%s", algorithms[chosen].name);
    snprintf(record->math, sizeof record->math, "%s", cudnn_math_name[format->math]);
    record->unit = format->unit;
    record->workspace = (double)l->bound->workspace_bytes;
    *work = &l->base;
    return STATUS_OK;
}
