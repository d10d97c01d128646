#include "model/workloads/lstm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/gpu/arena.h"
#include "worker/gpu/search.h"
#include "worker/cuda/workloads/cudnn_tensor.h"
#include "worker/cuda/workloads/workloads.h"

/* cuDNN's algorithms. All sequences have one length, so packed data have the layout
 * [sequence][batch][width]. */
enum { STANDARD, STATIC, STATIC_SMALL_H, DYNAMIC, ALGORITHMS };
static const struct lstm_algorithm {
    const char *name;
    cudnnRNNAlgo_t number;
} algorithms[ALGORITHMS] = {
    [STANDARD] = {"standard", CUDNN_RNN_ALGO_STANDARD},
    [STATIC] = {"persist-static", CUDNN_RNN_ALGO_PERSIST_STATIC},
    [STATIC_SMALL_H] = {"persist-static-small-h", CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H},
    [DYNAMIC] = {"persist-dynamic", CUDNN_RNN_ALGO_PERSIST_DYNAMIC},
};

static const cudnnRNNMode_t modes[LSTM_KINDS] = {
    [LSTM_LSTM] = CUDNN_LSTM,
    [LSTM_GRU] = CUDNN_GRU,
    [LSTM_RELU] = CUDNN_RNN_RELU,
    [LSTM_TANH] = CUDNN_RNN_TANH,
};

/* A piece of w that is contiguous in cuDNN's weight space, too. All members in elements. */
struct segment {
    int64_t begin, length; /* place in w (model/workloads/lstm.h) */
    int64_t at;            /* place in the weight space */
};

/* A built algorithm. All zero: not built. */
struct binding {
    bool runs;   /* cuDNN has run it; cuDNN refuses some algorithms only at their first run */
    double time; /* s, as hot_time of struct search */
    cudnnRNNDataDescriptor_t x_descriptor, y_descriptor;
    cudnnRNNDescriptor_t rnn;
    void *w, *dw, *workspace, *reserve; /* on the device; dw in a backward pass only */
    size_t w_bytes, workspace_bytes, reserve_bytes;
    void *kept;   /* copy of the reserve space after the forward pass; NULL: not copied */
    bool is_kept; /* the copy is made */
    struct segment *segments; /* ascending; owned */
    size_t segment_count;
    char name[128]; /* the algorithm's name with its kernels, "standard: KERNELS"; "": not known */
};

struct lstm_work {
    struct tensor_work tensors; /* backward: inputs x, dy; results dx, and y of its forward pass */
    struct lstm shape;
    cudnnDataType_t data, compute;
    cudnnMathType_t math;
    struct fill w_fill, dy_fill;
    cudnnDropoutDescriptor_t dropout;
    cudnnTensorDescriptor_t h_descriptor, c_descriptor;
    int first, count; /* the candidates: `count` algorithms from `first` on */
    struct binding bindings[ALGORITHMS], *bound;
    char refused[SEARCH_REFUSED]; /* see struct search */
};

/* ---- where cuDNN keeps the weights ---- */

/* cuDNN's numbers for the matrices and biases of a cell. cuDNN has two biases for each sum. `bias`
 * names the one that is set: the recurrent one for a GRU's last sum, else the input's. */
static const struct numbers {
    int input[LSTM_SUMS], recurrent[LSTM_SUMS]; /* by gate */
    int bias[LSTM_SUMS];                        /* by sum */
} numbers[LSTM_KINDS] = {
    [LSTM_LSTM] = {{0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}},
    [LSTM_GRU] = {{1, 0, 2}, {4, 3, 5}, {1, 0, 2, 5}},
    [LSTM_RELU] = {{0}, {1}, {0}},
    [LSTM_TANH] = {{0}, {1}, {0}},
};
static const int projection_number[] = {8};

static bool is_tensor(enum precision precision)
{
    return precision == PRECISION_FP16 || precision == PRECISION_BF16;
}

static size_t element_bytes(const struct lstm_work *l)
{
    return precision_info[l->shape.precision].bytes;
}

static enum status part_map(struct gpu *gpu, const struct lstm_work *l, struct binding *b,
                            int64_t layer, int64_t direction, enum lstm_part part,
                            cudnnTensorDescriptor_t matrix, cudnnTensorDescriptor_t bias,
                            struct error *error)
{
    enum { DIMENSIONS_MAX = 8 };
    const struct lstm *s = &l->shape;
    const struct {
        const int *list;
        int count;
    } parts[LSTM_PARTS] = {
        [LSTM_INPUT_MATRIX] = {numbers[s->kind].input, s->cell->gates},
        [LSTM_RECURRENT_MATRIX] = {numbers[s->kind].recurrent, s->cell->gates},
        [LSTM_BIAS] = {numbers[s->kind].bias, s->cell->sums},
        [LSTM_PROJECTION] = {projection_number, s->projection ? 1 : 0},
    };
    const int count = parts[part].count;
    const int64_t length = count ? lstm_part_size(s, layer, part) / count : 0;
    for (int i = 0; i < count; ++i) {
        void *matrix_at = NULL, *bias_at = NULL;
        TRY(CUDNN(cudnnGetRNNWeightParams(
            gpu->cudnn, b->rnn, (int32_t)(layer * s->directions + direction), b->w_bytes, b->w,
            parts[part].list[i], matrix, &matrix_at, bias, &bias_at)));
        const char *address = part == LSTM_BIAS ? bias_at : matrix_at;
        cudnnDataType_t type;
        int dimensions_count, dimensions[DIMENSIONS_MAX], strides[DIMENSIONS_MAX];
        int64_t size = 1;
        TRY(CUDNN(cudnnGetTensorNdDescriptor(part == LSTM_BIAS ? bias : matrix, DIMENSIONS_MAX,
                                             &type, &dimensions_count, dimensions, strides)));
        for (int j = 0; j < dimensions_count; ++j) /* a matrix is 1 x rows x columns */
            size *= dimensions[j];
        if (!address || size != length)
            return error_set(error, STATUS_FAILED,
                             "cuDNN's weights are laid out in a way not known here");
        b->segments[b->segment_count++] =
            (struct segment){lstm_w_at(s, layer, direction, part) + i * length, length,
                             (address - (const char *)b->w) / (int64_t)element_bytes(l)};
    }
    return STATUS_OK;
}

static enum status weights_map(struct gpu *gpu, const struct lstm_work *l, struct binding *b,
                               struct error *error)
{
    const struct lstm *s = &l->shape;
    const size_t most = (size_t)(s->layers * s->directions) * LSTM_PARTS * LSTM_SUMS;
    cudnnTensorDescriptor_t matrix = NULL, bias = NULL;
    b->segments = calloc(most, sizeof *b->segments);
    if (!b->segments)
        return error_set(error, STATUS_FAILED, "no memory for %zu weight segments", most);
    enum status status = CUDNN(cudnnCreateTensorDescriptor(&matrix));
    if (status == STATUS_OK)
        status = CUDNN(cudnnCreateTensorDescriptor(&bias));
    for (int64_t layer = 0; layer < s->layers; ++layer)
        for (int64_t direction = 0; direction < s->directions; ++direction)
            for (int part = 0; part < LSTM_PARTS && status == STATUS_OK; ++part)
                status = part_map(gpu, l, b, layer, direction, (enum lstm_part)part, matrix, bias,
                                  error);
    if (bias)
        cudnnDestroyTensorDescriptor(bias);
    if (matrix)
        cudnnDestroyTensorDescriptor(matrix);
    return status;
}

/* Fills the weight space with w's elements, and with zeros elsewhere. */
static enum status weights_fill(struct gpu *gpu, const struct lstm_work *l, const struct binding *b,
                                struct error *error)
{
    TRY(CUDA(cudaMemsetAsync(b->w, 0, b->w_bytes, gpu->stream)));
    for (size_t i = 0; i < b->segment_count; ++i) {
        const struct segment *segment = &b->segments[i];
        void *address = (char *)b->w + segment->at * (int64_t)element_bytes(l);
        TRY(CUDA(kernel_fill(l->shape.precision, address, segment->length, l->w_fill,
                             segment->begin, gpu->stream)));
    }
    return STATUS_OK;
}

static int segment_compare(const void *key, const void *element)
{
    int64_t offset = *(const int64_t *)key;
    const struct segment *segment = element;
    return offset < segment->begin ? -1 : offset >= segment->begin + segment->length;
}

/* ---- one algorithm ---- */

static void binding_release(struct arena *arena, struct binding *b)
{
    arena_free(arena, b->kept);
    arena_free(arena, b->reserve);
    arena_free(arena, b->workspace);
    arena_free(arena, b->dw);
    arena_free(arena, b->w);
    free(b->segments);
    if (b->rnn)
        cudnnDestroyRNNDescriptor(b->rnn);
    if (b->y_descriptor)
        cudnnDestroyRNNDataDescriptor(b->y_descriptor);
    if (b->x_descriptor)
        cudnnDestroyRNNDataDescriptor(b->x_descriptor);
    *b = (struct binding){0};
}

static enum status data_describe(const struct lstm_work *l, int64_t width,
                                 cudnnRNNDataDescriptor_t *descriptor, struct error *error)
{
    const struct lstm *s = &l->shape;
    int *lengths = malloc((size_t)s->batch * sizeof *lengths);
    if (!lengths)
        return error_set(error, STATUS_FAILED, "no memory for %lld lengths", (long long)s->batch);
    for (int64_t i = 0; i < s->batch; ++i)
        lengths[i] = (int)s->sequence;
    enum status status = CUDNN(cudnnCreateRNNDataDescriptor(descriptor));
    if (status == STATUS_OK)
        status = CUDNN(
            cudnnSetRNNDataDescriptor(*descriptor, l->data, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                                      (int)s->sequence, (int)s->batch, (int)width, lengths, NULL));
    free(lengths);
    return status;
}

/* Each gate has two biases for cuDNN. Biases that `numbers` does not name are zero and add nothing.
 * With one bias only, cuDNN refuses its persistent kernels, and a GRU needs both. After a failure
 * the caller releases the binding. */
static enum status binding_build(struct gpu *gpu, const struct lstm_work *l,
                                 const struct lstm_algorithm *algorithm, struct binding *b,
                                 struct error *error)
{
    const struct lstm *s = &l->shape;
    const bool backward = s->pass == LSTM_BACKWARD;
    const double spare = 8; /* free memory for a copy, in reserve spaces: others need memory, too */
    double available = 0;
    struct error unknown;
    cudnnForwardMode_t mode = backward ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
    TRY(data_describe(l, s->features, &b->x_descriptor, error));
    TRY(data_describe(l, s->output * s->directions, &b->y_descriptor, error));
    TRY(CUDNN(cudnnCreateRNNDescriptor(&b->rnn)));
    TRY(CUDNN(cudnnSetRNNDescriptor_v8(
        b->rnn, algorithm->number, modes[s->kind], CUDNN_RNN_DOUBLE_BIAS,
        s->directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
        l->data, l->compute, l->math, (int32_t)s->features, (int32_t)s->hidden, (int32_t)s->output,
        (int32_t)s->layers, l->dropout, CUDNN_RNN_PADDED_IO_DISABLED)));
    if (algorithm->number == CUDNN_RNN_ALGO_PERSIST_DYNAMIC)
        TRY(CUDNN(cudnnBuildRNNDynamic(gpu->cudnn, b->rnn, (int)s->batch)));
    TRY(CUDNN(cudnnGetRNNTempSpaceSizes(gpu->cudnn, b->rnn, mode, b->x_descriptor,
                                        &b->workspace_bytes, &b->reserve_bytes)));
    TRY(CUDNN(cudnnGetRNNWeightSpaceSize(gpu->cudnn, b->rnn, &b->w_bytes)));
    TRY(arena_allocate(gpu->arena, (double)b->w_bytes, "the weights", &b->w, error));
    if (backward)
        TRY(arena_allocate(gpu->arena, (double)b->w_bytes, "the weights' gradient", &b->dw, error));
    TRY(arena_allocate(gpu->arena, (double)b->workspace_bytes, "the workspace", &b->workspace,
                       error));
    TRY(arena_allocate(gpu->arena, (double)b->reserve_bytes, "the reserve space", &b->reserve,
                       error));
    /* Only for one layer in one direction: with two layers, the bits of a GRU's results varied. */
    if (backward && s->layers * s->directions == 1 &&
        arena_available(gpu->arena, &available, &unknown) == STATUS_OK &&
        available >= spare * (double)b->reserve_bytes)
        TRY(arena_allocate(gpu->arena, (double)b->reserve_bytes, "the reserve space's copy",
                           &b->kept, error));
    TRY(weights_map(gpu, l, b, error));
    return weights_fill(gpu, l, b, error);
}

/* ---- work_ops ---- */

/* The initial states are zero; nothing reads the final states. The data descriptors have the
 * lengths of the sequences, of which cuDNN 9 needs no copy on the device. */
static enum status forward(struct gpu *gpu, struct lstm_work *l, cudnnForwardMode_t mode,
                           struct error *error)
{
    const struct tensor_work *t = &l->tensors;
    const struct binding *b = l->bound;
    return CUDNN(cudnnRNNForward(
        gpu->cudnn, b->rnn, mode, NULL, b->x_descriptor, t->input[TENSOR_INPUT], b->y_descriptor,
        t->result[TENSOR_OUTPUT], l->h_descriptor, NULL, NULL, l->c_descriptor, NULL, NULL,
        b->w_bytes, b->w, b->workspace_bytes, b->workspace, b->reserve_bytes, b->reserve));
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
    const struct tensor_work *t = &l->tensors;
    const struct binding *b = l->bound;
    TRY(CUDNN(cudnnRNNBackwardData_v8(
        gpu->cudnn, b->rnn, NULL, b->y_descriptor, t->result[TENSOR_OUTPUT],
        t->input[TENSOR_OUTPUT], b->x_descriptor, t->result[TENSOR_INPUT], l->h_descriptor, NULL,
        NULL, NULL, l->c_descriptor, NULL, NULL, NULL, b->w_bytes, b->w, b->workspace_bytes,
        b->workspace, b->reserve_bytes, b->reserve)));
    TRY(CUDNN(cudnnRNNBackwardWeights_v8(
        gpu->cudnn, b->rnn, CUDNN_WGRAD_MODE_ADD, NULL, b->x_descriptor, t->input[TENSOR_INPUT],
        l->h_descriptor, NULL, b->y_descriptor, t->result[TENSOR_OUTPUT], b->w_bytes, b->dw,
        b->workspace_bytes, b->workspace, b->reserve_bytes, b->reserve)));
    l->bound->runs = true;
    return STATUS_OK;
}

/* Restores what a repetition overwrites. The data gradient overwrites the reserve space of the
 * training forward pass, so that pass runs again, unless `kept` has a copy of the reserve space.
 * cuDNN adds the weight gradient to dw, so dw becomes zero. */
static enum status backward_reset(struct gpu *gpu, struct work *work, struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    struct binding *b = l->bound;
    if (!b->is_kept)
        TRY(forward(gpu, l, CUDNN_FWD_MODE_TRAINING, error));
    if (b->kept)
        TRY(CUDA(cudaMemcpyAsync(b->is_kept ? b->reserve : b->kept,
                                 b->is_kept ? b->kept : b->reserve, b->reserve_bytes,
                                 cudaMemcpyDeviceToDevice, gpu->stream)));
    b->is_kept = b->kept;
    return CUDA(cudaMemsetAsync(b->dw, 0, b->w_bytes, gpu->stream));
}

/* Sets dy to zero beyond the first `samples` for this run. */
static enum status backward_run(struct gpu *gpu, struct work *work, int64_t samples,
                                struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    const struct tensor_work *t = &l->tensors;
    const struct lstm *s = &l->shape;
    void *dx = t->result[TENSOR_INPUT], *dy = t->input[TENSOR_OUTPUT];
    size_t row = (size_t)(s->output * s->directions) * element_bytes(l);
    size_t kept = (size_t)samples * row, step = (size_t)s->batch * row;
    TRY(CUDA(cudaMemsetAsync(dx, 0xff, t->result_bytes[TENSOR_INPUT], gpu->stream)));
    if (samples < s->batch)
        TRY(CUDA(cudaMemset2DAsync((char *)dy + kept, step, 0, step - kept, (size_t)s->sequence,
                                   gpu->stream)));
    TRY(backward_reset(gpu, work, error));
    TRY(backward_iterate(gpu, work, error));
    return CUDA(kernel_fill(s->precision, dy, lstm_y_size(s), l->dy_fill, 0, gpu->stream));
}

static const void *lstm_result(const struct work *work, enum tensor tensor)
{
    const struct lstm_work *l = (const struct lstm_work *)work;
    return tensor == TENSOR_WEIGHT ? l->bound->dw : l->tensors.result[tensor];
}

static int64_t lstm_element(const struct work *work, enum tensor tensor, int64_t offset)
{
    const struct binding *b = ((const struct lstm_work *)work)->bound;
    if (tensor != TENSOR_WEIGHT)
        return offset;
    const struct segment *segment =
        bsearch(&offset, b->segments, b->segment_count, sizeof *b->segments, segment_compare);
    return segment->at + (offset - segment->begin);
}

static void lstm_close(struct work *work)
{
    struct lstm_work *l = (struct lstm_work *)work;
    for (int i = 0; i < ALGORITHMS; ++i)
        binding_release(l->tensors.arena, &l->bindings[i]);
    if (l->c_descriptor)
        cudnnDestroyTensorDescriptor(l->c_descriptor);
    if (l->h_descriptor)
        cudnnDestroyTensorDescriptor(l->h_descriptor);
    if (l->dropout)
        cudnnDestroyDropoutDescriptor(l->dropout);
}

/* ---- the search ---- */

/* Returns whether an algorithm may win. On an H200 persist-static lost in fp16 for GRUs of 1,536
 * units in batches of 4 or more (standard is 1.2 to 41 times as fast); cuDNN has none for wider
 * ones. persist-dynamic, which cuDNN compiles for 1 to 10 s, lost if cuDNN had its kernel for small
 * widths, if registers could not hold the recurrent weights (GRU of 2,816 units), and in a single
 * step. In fp16 it also lost in all backward passes of DeepBench, if persist-static beat standard,
 * or if vector units need longer than a launch for the FLOPs of a step (GRU of 2,048 units, batch
 * 32). It won for GRUs of 1,024 units in fp32, and of 1,536 in fp16 with batch 1. */
static bool may_pay(const struct gpu *gpu, const struct lstm_work *l, int place)
{
    const struct lstm *s = &l->shape;
    const double weights = (double)(s->cell->gates * s->hidden * s->output), flops_most = 5e7;
    const double registers = 0.75 * 4 * gpu->limits.regsPerMultiprocessor * gpu->multiprocessors;
    const double standard = l->bindings[STANDARD].time, fixed = l->bindings[STATIC].time;
    const double clear = 1.25; /* ratio of times; a slow host adds less to the time of standard */
    const bool needed = !l->bindings[STANDARD].runs || l->refused[0]; /* standard may not do */
    if (place != DYNAMIC)
        return place != STATIC || needed || !is_tensor(s->precision) || s->kind != LSTM_GRU ||
               s->hidden < 1536 || s->batch < 4;
    if (s->sequence == 1 ||
        (is_tensor(s->precision) &&
         (s->pass == LSTM_BACKWARD || (fixed > 0 && (standard == 0 || clear * fixed < standard)) ||
          2 * weights * (double)s->batch > flops_most)))
        return false;
    return !l->bindings[STATIC_SMALL_H].runs && weights * (double)element_bytes(l) < registers;
}

static double *algorithm_hot_time(const struct work *work, int candidate)
{
    struct lstm_work *l = (struct lstm_work *)(uintptr_t)work;
    return &l->bindings[l->first + candidate].time;
}

/* Built algorithms stay, because the search binds them in turn. The compiled one comes last. */
static enum status algorithm_bind(struct gpu *gpu, struct work *work, int candidate,
                                  struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    const int place = l->first + candidate;
    const struct lstm_algorithm *algorithm = &algorithms[place];
    l->bound = &l->bindings[place];
    if (l->bound->rnn)
        return STATUS_OK;
    if (l->count > 1 && !may_pay(gpu, l, place))
        return error_set(error, STATUS_UNSUPPORTED, "%s is not tried: there are faster kernels",
                         algorithm->name);
    enum status status = binding_build(gpu, l, algorithm, l->bound, error);
    if (status)
        binding_release(gpu->arena, l->bound);
    return status;
}

static const char *algorithm_name(const struct work *work, int candidate)
{
    const struct lstm_work *l = (const struct lstm_work *)work;
    const char *name = l->bindings[l->first + candidate].name;
    return name[0] ? name : algorithms[l->first + candidate].name;
}

/* Adds the names of the multiplying kernels to the algorithm's name: cuBLAS selects them for each
 * shape, whatever cuDNN calls the algorithm. */
static enum status algorithm_identify(struct gpu *gpu, struct work *work, struct identity *identity,
                                      struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    struct binding *bound = l->bound;
    struct kernel_list list = {.count = 0};
    const char *name = algorithms[bound - l->bindings].name;
    TRY(identity_find(gpu, work, identity, &list, error));
    char *end = bound->name + snprintf(bound->name, sizeof bound->name, "%s: ", name);
    kernel_list_format(&list, end, (size_t)(bound->name + sizeof bound->name - end));
    if (!*end)
        bound->name[0] = '\0';
    return STATUS_OK;
}

/* cuBLAS's kernels of fp64 use the chip's tensor units if there are any; their names then have the
 * word "tensor". */
static enum status algorithm_choose(struct gpu *gpu, struct lstm_work *l, struct record *record,
                                    struct error *error)
{
    const struct search search = {
        .gpu = gpu,
        .work = &l->tensors.base,
        .count = l->count,
        .ordered = l->count,
        .bind = algorithm_bind,
        .name = algorithm_name,
        .hot_time = algorithm_hot_time,
        .refused = l->refused,
        .identify = algorithm_identify,
    };
    int chosen;
    enum status status = search_run(&search, &chosen, record, error);
    if (status && l->count == 1)
        return error_prefix(error, status == STATUS_FAILED ? STATUS_UNSUPPORTED : status,
                            "algorithm %s", l->shape.algorithm);
    TRY(status);
    l->bound->is_kept = false; /* y must be that of the chosen algorithm */
    l->tensors.result_bytes[TENSOR_WEIGHT] = l->bound->w_bytes; /* lstm_result returns dw */
    bool tensor = l->math == CUDNN_TENSOR_OP_MATH ||
                  (l->shape.precision == PRECISION_FP64 && strstr(l->bound->name, "tensor"));
    tensor_work_describe(algorithm_name(search.work, chosen), tensor ? UNIT_TENSOR : UNIT_VECTOR,
                         (double)l->bound->workspace_bytes, record);
    snprintf(record->math, sizeof record->math, "%s", cudnn_math_name[l->math]);
    for (int i = 0; i < ALGORITHMS; ++i)
        if (&l->bindings[i] != l->bound)
            binding_release(gpu->arena, &l->bindings[i]);
    return STATUS_OK;
}

/* Searches again without the bound algorithm's kernels. */
static enum status lstm_reject(struct gpu *gpu, struct work *work, struct record *record,
                               struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    bool recalled = strcmp(record->algorithm_origin, algorithm_searched) != 0;
    TRY(search_refuse(l->refused, recalled, record, error));
    return algorithm_choose(gpu, l, record, error);
}

/* ---- preparation ---- */

static enum status state_describe(const struct lstm_work *l, int64_t width,
                                  cudnnTensorDescriptor_t *descriptor, struct error *error)
{
    const struct lstm *s = &l->shape;
    int dimensions[3] = {(int)(s->layers * s->directions), (int)s->batch, (int)width};
    int strides[3] = {dimensions[1] * dimensions[2], dimensions[2], 1};
    TRY(CUDNN(cudnnCreateTensorDescriptor(descriptor)));
    return CUDNN(cudnnSetTensorNdDescriptor(*descriptor, l->data, 3, dimensions, strides));
}

/* Refuses tf32, because cuDNN's "conversion" of fp32 goes to fp16, with errors of 2e-4. */
static enum status lstm_check(const struct gpu *gpu, const struct config *config,
                              struct error *error)
{
    const enum precision precision = config_precision(config);
    const struct lstm s = lstm_from(config);
    const double state = (double)(s.layers * s.directions) * (double)s.batch;
    (void)gpu;
    TRY(cudnn_count_check(state * (double)s.hidden, "choose a smaller batch", error));
    if (precision == PRECISION_FP64 || precision == PRECISION_FP32 || is_tensor(precision))
        return STATUS_OK;
    return error_set(error, STATUS_UNSUPPORTED,
                     "cuDNN's %s is measured in fp64, fp32, fp16 and bf16, not in %s", s.cell->name,
                     precision_info[precision].name);
}

/* The bindings have the weights, in cuDNN's own layout; `tensors` has none. */
static void lstm_shape(const struct config *config, struct work *work, struct tensors *tensors)
{
    ((struct lstm_work *)work)->shape = lstm_from(config);
    tensors->read[TENSOR_WEIGHT] = tensors->written[TENSOR_WEIGHT] = 0;
}

static enum status lstm_open(struct gpu *gpu, const struct config *config, struct work *work,
                             struct record *record, struct error *error)
{
    struct lstm_work *l = (struct lstm_work *)work;
    const struct lstm *s = &l->shape;
    struct work_ops *ops = &l->tensors.ops;
    ops->result = lstm_result;
    ops->element = lstm_element;
    ops->reject = lstm_reject;
    if (s->pass == LSTM_BACKWARD) {
        ops->reset = backward_reset;
        ops->iterate = backward_iterate;
        ops->run = backward_run;
    }
    l->data = cudnn_data_type(s->precision);
    l->compute = s->precision == PRECISION_FP64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    l->math = is_tensor(s->precision) ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH;
    l->w_fill = config_fill(config, l->tensors.seed, TENSOR_WEIGHT);
    l->dy_fill = config_fill(config, l->tensors.seed, TENSOR_OUTPUT);
    l->count = strcmp(s->algorithm, "auto") == 0 ? ALGORITHMS : 1;
    while (l->count == 1 && l->first < ALGORITHMS &&
           strcmp(algorithms[l->first].name, s->algorithm) != 0)
        ++l->first;
    if (l->first == ALGORITHMS)
        return error_set(error, STATUS_UNSUPPORTED, "cuDNN's %s has no algorithm %s", s->cell->name,
                         s->algorithm);
    TRY(CUDNN(cudnnCreateDropoutDescriptor(&l->dropout)));
    TRY(CUDNN(cudnnSetDropoutDescriptor(l->dropout, gpu->cudnn, 0.0f, NULL, 0, 0)));
    TRY(state_describe(l, s->output, &l->h_descriptor, error));
    TRY(state_describe(l, s->hidden, &l->c_descriptor, error));
    return algorithm_choose(gpu, l, record, error);
}

const struct tensor_routine lstm_cudnn = {
    .bytes = sizeof(struct lstm_work),
    .shape = lstm_shape,
    .check = lstm_check,
    .open = lstm_open,
    .iterate = forward_iterate,
    .close = lstm_close,
};
