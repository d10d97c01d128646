/* Recurrent layers on the CPU by oneDNN: one operation for each layer, which does all time steps and both
 * directions. The weights are packed before, as frameworks do that keep a model; gradients come back in
 * the user's layout, within the time. */
#include "worker/cpu/lstm_onednn.h"

#include <stdlib.h>

#include "model/workloads/lstm.h"
#include "worker/cpu/lstm.h"
#include "worker/cpu/onednn_routine.h"

/* Offsets are in the scratch memory, in bytes. */
struct layer {
    struct onednn *forward, *backward; /* backward NULL but in that pass */
    size_t forward_memory, backward_memory;
    size_t output; /* of all layers but the last */
    size_t dinput; /* of all layers but the first */
};

struct lstm_onednn_plan {
    struct lstm shape;
    size_t zeros;         /* of all layers: states before the first step */
    size_t dstates[2];    /* their gradients, which nobody asks for */
    struct layer *layers; /* owned */
};

static struct onednn_tensor sequence_tensor(const struct lstm *s, int64_t width)
{
    return (struct onednn_tensor){
        .place = ONEDNN_PLAIN,
        .precision = s->precision,
        .axes = 3,
        .extents = {s->sequence, s->batch, width},
        .strides = {s->batch * width, width, 1},
    };
}

/* From one direction's weights to the other's; any number where there is one. */
static int64_t direction_stride(const struct lstm *s, int64_t layer)
{
    return s->directions > 1 ? lstm_w_at(s, layer, 1, LSTM_BIAS) - lstm_w_at(s, layer, 0, LSTM_BIAS)
                             : lstm_w_size(s);
}

/* [1][direction][input][gate][output] of [direction][gate][output][input] in memory. */
static struct onednn_tensor matrix_tensor(const struct lstm *s, int64_t layer, int64_t width,
                                          enum onednn_place place)
{
    int64_t stride = direction_stride(s, layer);
    return (struct onednn_tensor){
        .place = place,
        .precision = s->precision,
        .axes = 5,
        .extents = {1, s->directions, width, s->cell->gates, s->hidden},
        .strides = {s->directions * stride, stride, 1, s->hidden * width, width},
    };
}

static struct onednn_tensor bias_tensor(const struct lstm *s, int64_t layer,
                                        enum onednn_place place)
{
    int64_t stride = direction_stride(s, layer);
    return (struct onednn_tensor){
        .place = place,
        .precision = s->precision,
        .axes = 4,
        .extents = {1, s->directions, s->cell->sums, s->hidden},
        .strides = {s->directions * stride, stride, s->hidden, 1},
    };
}

/* [1][direction][input][output] of [direction][output][input] in memory. */
static struct onednn_tensor projection_tensor(const struct lstm *s, int64_t layer)
{
    int64_t stride = direction_stride(s, layer);
    return (struct onednn_tensor){
        .place = ONEDNN_PACKED,
        .precision = s->precision,
        .axes = s->projection ? 4 : 0,
        .extents = {1, s->directions, s->hidden, s->projection},
        .strides = {s->directions * stride, stride, 1, s->hidden},
    };
}

/* Initial states are zero, but the library has to see them: without, 2.6.3 takes the last ones for them in
 * the gradient of the recurrent weights. */
static struct onednn_tensor state_tensor(const struct lstm *s, int64_t width,
                                         enum precision precision)
{
    int64_t size = s->batch * width;
    return (struct onednn_tensor){
        .place = ONEDNN_PLAIN,
        .precision = precision,
        .axes = 4,
        .extents = {1, s->directions, s->batch, width},
        .strides = {s->directions * size, size, width, 1},
    };
}

static const struct {
    enum onednn_kind kind;
    enum onednn_function function;
} kinds[LSTM_KINDS] = {
    [LSTM_LSTM] = {ONEDNN_LSTM, ONEDNN_IDENTITY},
    [LSTM_GRU] = {ONEDNN_GRU, ONEDNN_IDENTITY},
    [LSTM_RELU] = {ONEDNN_RNN, ONEDNN_RELU},
    [LSTM_TANH] = {ONEDNN_RNN, ONEDNN_TANH},
};

static struct onednn_operation operation_of(const struct lstm *s, int64_t layer,
                                            enum onednn_pass pass)
{
    int64_t width = lstm_input_width(s, layer);
    struct onednn_operation operation = {
        .kind = kinds[s->kind].kind,
        .function = kinds[s->kind].function,
        .pass = pass,
        .bidirectional = s->directions > 1,
        .tensors = {[ONEDNN_SOURCE] = sequence_tensor(s, width),
                    [ONEDNN_WEIGHTS] = matrix_tensor(s, layer, width, ONEDNN_PACKED),
                    [ONEDNN_RECURRENT] = matrix_tensor(s, layer, s->output, ONEDNN_PACKED),
                    [ONEDNN_PROJECTION] = projection_tensor(s, layer),
                    [ONEDNN_BIAS] = bias_tensor(s, layer, ONEDNN_PACKED),
                    [ONEDNN_DESTINATION] = sequence_tensor(s, s->output * s->directions),
                    [ONEDNN_STATE] = state_tensor(s, s->output, s->precision)},
    };
    struct onednn_tensor *tensors = operation.tensors;
    if (s->kind == LSTM_LSTM)
        tensors[ONEDNN_CELL] = state_tensor(s, s->hidden, PRECISION_FP32);
    if (pass != ONEDNN_BACKWARD)
        return operation;
    tensors[ONEDNN_DIFF_SOURCE] = tensors[ONEDNN_SOURCE];
    tensors[ONEDNN_DIFF_WEIGHTS] = matrix_tensor(s, layer, width, ONEDNN_REORDERED);
    tensors[ONEDNN_DIFF_RECURRENT] = matrix_tensor(s, layer, s->output, ONEDNN_REORDERED);
    tensors[ONEDNN_DIFF_BIAS] = bias_tensor(s, layer, ONEDNN_REORDERED);
    tensors[ONEDNN_DIFF_DESTINATION] = tensors[ONEDNN_DESTINATION];
    tensors[ONEDNN_DIFF_STATE] = tensors[ONEDNN_STATE];
    tensors[ONEDNN_DIFF_CELL] = tensors[ONEDNN_CELL];
    return operation;
}

static size_t scratch_take(struct work *work, size_t bytes)
{
    const size_t page = 4096;
    size_t offset = work->scratch_size;
    work->scratch_size += (bytes + page - 1) / page * page;
    return offset;
}

/* Also that it is not only a definition, unless it was asked for by its name. */
static enum status create(struct work *work, const struct onednn_operation *operation,
                          const struct onednn *forward, struct onednn **made, struct error *error)
{
    enum status status = onednn_create(operation, forward, made, error);
    return status ? status : onednn_routine_accept(work, *made, error);
}

static enum status layer_plan(struct work *work, int64_t index, struct error *error)
{
    struct lstm_onednn_plan *plan = work->plan;
    const struct lstm *s = &plan->shape;
    struct layer *layer = &plan->layers[index];
    bool backward = s->pass == LSTM_BACKWARD;
    struct onednn_operation operation =
        operation_of(s, index, backward ? ONEDNN_TRAINING : ONEDNN_INFERENCE);
    enum status status = create(work, &operation, NULL, &layer->forward, error);
    if (status)
        return status;
    layer->forward_memory = scratch_take(work, onednn_memory(layer->forward));
    int64_t steps = s->sequence * s->batch;
    if (index < s->layers - 1)
        layer->output =
            scratch_take(work, (size_t)(steps * s->output * s->directions) * work->element);
    if (!backward)
        return STATUS_OK;
    operation = operation_of(s, index, ONEDNN_BACKWARD);
    status = create(work, &operation, layer->forward, &layer->backward, error);
    if (status)
        return status;
    layer->backward_memory = scratch_take(work, onednn_memory(layer->backward));
    if (index > 0)
        layer->dinput =
            scratch_take(work, (size_t)(steps * lstm_input_width(s, index)) * work->element);
    return STATUS_OK;
}

static enum status lstm_plan(struct work *work, const struct topology *topology,
                             struct error *error)
{
    (void)topology;
    struct lstm_onednn_plan *plan = work->plan;
    plan->shape = lstm_from(&work->config);
    const struct lstm *s = &plan->shape;
    if (s->projection && s->pass == LSTM_BACKWARD)
        return error_set(error, STATUS_UNSUPPORTED,
                         "oneDNN has no gradients of an LSTM with a projection");
    if (s->projection && s->precision != PRECISION_FP32) /* 2.6.3: off by its own size */
        return error_set(error, STATUS_UNSUPPORTED,
                         "oneDNN's LSTM with a projection is wrong in %s: it is used in fp32",
                         precision_info[s->precision].name);
    lstm_tensors(work, s);
    plan->layers = calloc((size_t)s->layers, sizeof *plan->layers);
    if (!plan->layers)
        return error_set(error, STATUS_FAILED, "no memory for %lld layers", (long long)s->layers);
    size_t state = (size_t)(s->directions * s->batch * s->hidden) * sizeof(float);
    plan->zeros = scratch_take(work, state);
    for (int i = 0; i < 2; ++i)
        plan->dstates[i] = scratch_take(work, s->pass == LSTM_BACKWARD ? state : 0);
    enum status status = STATUS_OK;
    for (int64_t i = 0; !status && i < s->layers; ++i)
        status = layer_plan(work, i, error);
    return status;
}

static void lstm_release(struct work *work)
{
    struct lstm_onednn_plan *plan = work->plan;
    for (int64_t i = 0; plan->layers && i < plan->shape.layers; ++i) {
        onednn_destroy(plan->layers[i].backward);
        onednn_destroy(plan->layers[i].forward);
    }
    free(plan->layers);
}

static char *weights_at(const struct work *work, void *weights, int64_t layer, enum lstm_part part)
{
    const struct lstm_onednn_plan *plan = work->plan;
    return (char *)weights + (size_t)lstm_w_at(&plan->shape, layer, 0, part) * work->element;
}

static enum status layer_ready(struct work *work, int64_t index, struct error *error)
{
    const struct lstm_onednn_plan *plan = work->plan;
    const struct layer *layer = &plan->layers[index], *below = layer - 1, *above = layer + 1;
    bool last = index == plan->shape.layers - 1;
    char *scratch = work->scratch;
    void *weights = work->input[TENSOR_WEIGHT];
    void *data[ONEDNN_ARGUMENTS] = {
        [ONEDNN_SOURCE] = index > 0 ? scratch + below->output : work->input[TENSOR_INPUT],
        [ONEDNN_WEIGHTS] = weights_at(work, weights, index, LSTM_INPUT_MATRIX),
        [ONEDNN_RECURRENT] = weights_at(work, weights, index, LSTM_RECURRENT_MATRIX),
        [ONEDNN_PROJECTION] = weights_at(work, weights, index, LSTM_PROJECTION),
        [ONEDNN_BIAS] = weights_at(work, weights, index, LSTM_BIAS),
        [ONEDNN_DESTINATION] = last ? work->result[TENSOR_OUTPUT] : scratch + layer->output,
        [ONEDNN_STATE] = scratch + plan->zeros,
        [ONEDNN_CELL] = scratch + plan->zeros,
    };
    enum status status = onednn_bind(layer->forward, data, scratch + layer->forward_memory, error);
    if (status || !layer->backward)
        return status;
    weights = work->result[TENSOR_WEIGHT];
    data[ONEDNN_DIFF_SOURCE] = index > 0 ? scratch + layer->dinput : work->result[TENSOR_INPUT];
    data[ONEDNN_DIFF_WEIGHTS] = weights_at(work, weights, index, LSTM_INPUT_MATRIX);
    data[ONEDNN_DIFF_RECURRENT] = weights_at(work, weights, index, LSTM_RECURRENT_MATRIX);
    data[ONEDNN_DIFF_BIAS] = weights_at(work, weights, index, LSTM_BIAS);
    data[ONEDNN_DIFF_DESTINATION] = last ? work->input[TENSOR_OUTPUT] : scratch + above->dinput;
    data[ONEDNN_DIFF_STATE] = scratch + plan->dstates[0];
    data[ONEDNN_DIFF_CELL] = scratch + plan->dstates[1];
    return onednn_bind(layer->backward, data, scratch + layer->backward_memory, error);
}

static enum status lstm_ready(struct work *work, struct error *error)
{
    const struct lstm_onednn_plan *plan = work->plan;
    enum status status = STATUS_OK;
    for (int64_t i = 0; !status && i < plan->shape.layers; ++i)
        status = layer_ready(work, i, error);
    return status;
}

static void forward_run(const struct lstm_onednn_plan *plan, struct trace *trace)
{
    for (int64_t i = 0; i < plan->shape.layers; ++i)
        onednn_run(plan->layers[i].forward, trace);
}

static void lstm_before(struct work *work)
{
    const struct lstm_onednn_plan *plan = work->plan;
    if (plan->shape.pass == LSTM_BACKWARD)
        forward_run(plan, NULL);
}

static void lstm_run(struct work *work, struct trace *trace)
{
    const struct lstm_onednn_plan *plan = work->plan;
    if (plan->shape.pass == LSTM_FORWARD)
        forward_run(plan, trace);
    for (int64_t i = plan->shape.layers - 1; plan->shape.pass == LSTM_BACKWARD && i >= 0; --i)
        onednn_run(plan->layers[i].backward, trace);
}

static const char *lstm_name(const struct work *work)
{
    const struct layer *first = ((const struct lstm_onednn_plan *)work->plan)->layers;
    return onednn_name(first->backward ? first->backward : first->forward);
}

const struct routine lstm_onednn = {
    .workload = &lstm_workload,
    .implementation = "onednn",
    .plan_size = sizeof(struct lstm_onednn_plan),
    .own_regions = true,
    .check = onednn_check,
    .plan = lstm_plan,
    .ready = lstm_ready,
    .before = lstm_before,
    .run = lstm_run,
    .gradient_shape = lstm_gradient_shape,
    .release = lstm_release,
    .name = lstm_name,
};
