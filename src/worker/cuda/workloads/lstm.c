#include "worker/cuda/workloads/workloads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/libraries.h"
#include "model/choice.h"
#include "model/workloads/lstm.h"
#include "worker/cuda/workloads/lstm_binding.h"
#include "worker/gpu/search.h"

/* What cuDNN calls a conversion of fp32 is one to fp16, off by 2e-4: that is no tf32. */
static const struct lstm_format formats[PRECISION_COUNT] = {
    [PRECISION_FP64] = {true, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_FMA_MATH, UNIT_VECTOR},
    [PRECISION_BF16] = {true, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH,
                        UNIT_TENSOR},
    [PRECISION_FP32] = {true, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, UNIT_VECTOR},
    [PRECISION_FP16] = {true, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, UNIT_TENSOR},
};

struct lstm_work {
    struct work base;
    struct lstm shape;
    const struct lstm_format *format;
    struct config config;
    uint64_t seed;
    cudnnDropoutDescriptor_t dropout;
    cudnnTensorDescriptor_t h_descriptor, c_descriptor; /* of the states */
    struct arena *arena;                                /* whose memory it has */
    void *x, *y;
    void *dx, *dy;    /* backward only */
    int first, count; /* the algorithms that are wanted */
    struct lstm_binding bindings[LSTM_ALGORITHMS], *bound;
    char refused[SEARCH_REFUSED]; /* algorithm_id of wrong results, separated by spaces */
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
                                 l->x, l->bound->y_descriptor, l->y, l->h_descriptor, NULL, NULL,
                                 l->c_descriptor, NULL, NULL, l->bound->w_bytes, l->bound->w,
                                 l->bound->workspace_bytes, l->bound->workspace,
                                 l->bound->reserve_bytes, l->bound->reserve));
}

static enum status forward_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    TRY(forward(gpu, l, CUDNN_FWD_MODE_INFERENCE, error));
    l->bound->runs = true;
    return STATUS_OK;
}

static enum status backward_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    TRY(CUDNN(cudnnRNNBackwardData_v8(
        gpu->cudnn, l->bound->rnn, NULL, l->bound->y_descriptor, l->y, l->dy,
        l->bound->x_descriptor, l->dx, l->h_descriptor, NULL, NULL, NULL, l->c_descriptor, NULL,
        NULL, NULL, l->bound->w_bytes, l->bound->w, l->bound->workspace_bytes, l->bound->workspace,
        l->bound->reserve_bytes, l->bound->reserve)));
    TRY(CUDNN(cudnnRNNBackwardWeights_v8(
        gpu->cudnn, l->bound->rnn, CUDNN_WGRAD_MODE_ADD, NULL, l->bound->x_descriptor, l->x,
        l->h_descriptor, NULL, l->bound->y_descriptor, l->y, l->bound->w_bytes, l->bound->dw,
        l->bound->workspace_bytes, l->bound->workspace, l->bound->reserve_bytes,
        l->bound->reserve)));
    l->bound->runs = true;
    return STATUS_OK;
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
    size_t row = (size_t)(s->output * s->directions) * element_bytes(l);
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

static int64_t lstm_element(const struct work *work, enum tensor tensor, int64_t offset)
{
    const struct lstm_work *l = (const struct lstm_work *)work;
    return tensor == TENSOR_WEIGHT ? lstm_weights_at(&l->bound->weights, offset) : offset;
}

static void lstm_release(struct work *work)
{
    struct lstm_work *l = (struct lstm_work *)work;
    for (int i = 0; i < LSTM_ALGORITHMS; ++i)
        lstm_binding_release(l->arena, &l->bindings[i]);
    arena_give(l->arena, l->dy);
    arena_give(l->arena, l->dx);
    arena_give(l->arena, l->y);
    arena_give(l->arena, l->x);
    if (l->c_descriptor)
        cudnnDestroyTensorDescriptor(l->c_descriptor);
    if (l->h_descriptor)
        cudnnDestroyTensorDescriptor(l->h_descriptor);
    if (l->dropout)
        cudnnDestroyDropoutDescriptor(l->dropout);
    free(l);
}

/* ---- preparation ---- */

/* cuDNN compiles for longer than all else of a search takes, and where it has its kernel of small widths, that
 * was at least twice as fast wherever this was looked at. Its other ready ones lose at great widths: a GRU's of
 * 1024 in fp32 takes 1.4 times as long. Compiled ones come last. */
static bool is_hopeless(const struct lstm_work *l, int algorithm)
{
    bool ready = false;
    for (int i = 0; i < algorithm; ++i)
        ready |= lstm_algorithm_is_small(i) && l->bindings[i].runs;
    return l->count > 1 && lstm_algorithm_is_compiled(algorithm) && ready;
}

/* Padded data are for what cuDNN does not have on packed ones: where it has both, the kernels were the same
 * in every shape that was looked at. */
static bool is_had_packed(const struct lstm_work *l, int algorithm)
{
    int packed = lstm_algorithm_packed(algorithm);
    return packed != algorithm && l->bindings[packed].name[0];
}

/* What was built stays, because the search binds in turn. */
static enum status algorithm_bind(struct gpu *gpu, struct work *work, int candidate,
                                  struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    const struct lstm_setting setting = {
        .gpu = gpu,
        .shape = &l->shape,
        .format = l->format,
        .dropout = l->dropout,
        .fill = config_fill(&l->config, l->seed, TENSOR_WEIGHT),
    };
    int algorithm = l->first + candidate;
    if (is_had_packed(l, algorithm))
        return error_set(error, STATUS_UNSUPPORTED, "%s is had on packed data",
                         lstm_algorithm_name[algorithm]);
    l->bound = &l->bindings[algorithm];
    if (!l->bound->built && is_hopeless(l, algorithm))
        return error_set(error, STATUS_UNSUPPORTED, "%s is not compiled: there are faster kernels",
                         lstm_algorithm_name[algorithm]);
    return l->bound->built ? STATUS_OK : lstm_binding_build(&setting, algorithm, l->bound, error);
}

static const char *algorithm_name(const struct work *work, int candidate)
{
    const struct lstm_work *l = (const struct lstm_work *)work;
    int algorithm = l->first + candidate;
    const char *name = l->bindings[algorithm].name;
    return name[0] ? name : lstm_algorithm_name[algorithm];
}

/* Which kernels multiply is cuBLAS's choice for each shape, whatever cuDNN calls the algorithm: its name
 * gets their names. */
static enum status algorithm_identify(struct gpu *gpu, struct work *work, struct identity *identity,
                                      struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    struct lstm_binding *bound = l->bound;
    struct kernel_list list = {.count = 0};
    const char *name = lstm_algorithm_name[bound - l->bindings];
    TRY(identity_find(gpu, work, identity, &list, error));
    char *end = bound->name + snprintf(bound->name, sizeof bound->name, "%s: ", name);
    kernel_list_format(&list, end, (size_t)(bound->name + sizeof bound->name - end));
    if (!*end)
        bound->name[0] = '\0';
    return STATUS_OK;
}

static void others_release(struct lstm_work *l)
{
    for (int i = 0; i < LSTM_ALGORITHMS; ++i)
        if (&l->bindings[i] != l->bound)
            lstm_binding_release(l->arena, &l->bindings[i]);
}

static enum status state_describe(const struct lstm_work *l, int64_t width,
                                  cudnnTensorDescriptor_t *descriptor, struct error *error)
{
    const struct lstm *s = &l->shape;
    int dimensions[3] = {(int)(s->layers * s->directions), (int)s->batch, (int)width};
    int strides[3] = {dimensions[1] * dimensions[2], dimensions[2], 1};
    TRY(CUDNN(cudnnCreateTensorDescriptor(descriptor)));
    return CUDNN(cudnnSetTensorNdDescriptor(*descriptor, l->format->data, 3, dimensions, strides));
}

static enum status descriptors_create(struct gpu *gpu, struct lstm_work *l, struct error *error)
{
    TRY(CUDNN(cudnnCreateDropoutDescriptor(&l->dropout)));
    TRY(CUDNN(cudnnSetDropoutDescriptor(l->dropout, gpu->cudnn, 0.0f, NULL, 0, 0)));
    TRY(state_describe(l, l->shape.output, &l->h_descriptor, error));
    return state_describe(l, l->shape.hidden, &l->c_descriptor, error);
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

static enum status algorithms_select(struct lstm_work *l, struct error *error)
{
    const char *wanted = l->shape.algorithm;
    l->count = LSTM_ALGORITHMS;
    if (strcmp(wanted, "auto") == 0)
        return STATUS_OK;
    l->count = 1;
    while (l->first < LSTM_ALGORITHMS && strcmp(lstm_algorithm_name[l->first], wanted) != 0)
        ++l->first;
    return l->first < LSTM_ALGORITHMS
               ? STATUS_OK
               : error_set(error, STATUS_UNSUPPORTED, "cuDNN's %s has no algorithm %s",
                           l->shape.cell->name, wanted);
}

/* cuDNN may refuse an algorithm only when it runs. */
static enum status algorithm_choose(struct gpu *gpu, struct lstm_work *l, int *chosen,
                                    struct record *record, struct error *error)
{
    const struct search search = {
        .gpu = gpu,
        .work = &l->base,
        .cold = config_cold(&l->config),
        .count = l->count,
        .ordered = l->count,
        .bind = algorithm_bind,
        .name = algorithm_name,
        .refused = l->refused,
        .identify = algorithm_identify,
    };
    enum status status = search_run(&search, chosen, record, error);
    if (status == STATUS_OK || l->count > 1)
        return status;
    error_prefix(error, "algorithm %s", l->shape.algorithm);
    return status == STATUS_FAILED ? STATUS_UNSUPPORTED : status;
}

/* cuBLAS's kernels of fp64 use tensor units where the chip has such, and say so in their names. */
static enum unit unit_of(const struct lstm_work *l)
{
    bool tensor = l->shape.precision == PRECISION_FP64 && strstr(l->bound->name, "tensor");
    return tensor ? UNIT_TENSOR : l->format->unit;
}

static void algorithm_describe(const struct lstm_work *l, int chosen, struct record *record)
{
    snprintf(record->algorithm, sizeof record->algorithm, "%s", algorithm_name(&l->base, chosen));
    snprintf(record->math, sizeof record->math, "%s", cudnn_math_name[l->format->math]);
    record->unit = unit_of(l);
    record->workspace = (double)l->bound->workspace_bytes;
}

/* The whole search again, without these kernels. */
static enum status lstm_reject(struct gpu *gpu, struct work *work, struct record *record,
                               struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    int chosen;
    bool recalled = strcmp(record->algorithm_origin, choice_searched) != 0;
    TRY(search_refuse(l->refused, recalled, record, error));
    TRY(algorithm_choose(gpu, l, &chosen, record, error));
    algorithm_describe(l, chosen, record);
    others_release(l);
    return STATUS_OK;
}

static const struct work_ops pass_ops[] = {
    [LSTM_FORWARD] = {.iterate = forward_iterate,
                      .run = forward_run,
                      .result = lstm_result,
                      .element = lstm_element,
                      .reject = lstm_reject,
                      .release = lstm_release},
    [LSTM_BACKWARD] = {.reset = backward_reset,
                       .iterate = backward_iterate,
                       .run = backward_run,
                       .result = lstm_result,
                       .element = lstm_element,
                       .reject = lstm_reject,
                       .release = lstm_release},
};

static enum status work_prepare(struct gpu *gpu, struct lstm_work *l, struct record *record,
                                struct error *error)
{
    int chosen;
    TRY(algorithms_select(l, error));
    TRY(descriptors_create(gpu, l, error));
    TRY(tensors_create(gpu, l, error));
    TRY(algorithm_choose(gpu, l, &chosen, record, error));
    algorithm_describe(l, chosen, record);
    others_release(l);
    return STATUS_OK;
}

enum status lstm_cudnn_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                               struct work **work, struct record *record, struct error *error)
{
    struct lstm shape = lstm_from(config);
    const struct lstm_format *format = &formats[shape.precision];
    if (!format->offered)
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuDNN's %s is measured in fp64, fp32, fp16 and bf16, not in %s",
                         shape.cell->name, precision_info[shape.precision].name);
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
    enum status status = work_prepare(gpu, l, record, error);
    if (status) {
        lstm_release(&l->base);
        return status;
    }
    *work = &l->base;
    return STATUS_OK;
}
