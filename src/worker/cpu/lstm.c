/* Recurrent layers on the CPU. oneDNN runs one operation for each layer. Plain loops
 * (lstm_network.h) run a region for a layer's inputs, then one for each step. */
#include <stdlib.h>

#include "model/workloads/lstm.h"
#include "worker/cpu/onednn.h"
#include "worker/cpu/routine.h"

#ifdef REAL

#include "model/workloads/lstm_network.h"

static struct NAME(network) NAME(network_of)(const struct work *work, struct trace *trace)
{
    const struct lstm *s = work->shape;
    const struct plain_plan *plan = work->plan;
    char *scratch = work->scratch;
    return (struct NAME(network)){
        .s = *s,
        .samples = s->batch,
        .rows = s->sequence * s->batch,
        .loop = loop_run,
        .argument = trace,
        .w = work->input[TENSOR_WEIGHT],
        .x = work->input[TENSOR_INPUT],
        .y = (REAL *)(scratch + plan->y),
        .units = (struct NAME(unit) *)(scratch + plan->units),
        .h = (REAL *)(scratch + plan->h),
        .dout = (REAL *)(scratch + plan->dout),
        .dsums = (REAL *)(scratch + plan->dsums),
        .carried = (REAL *)(scratch + plan->carried),
        .between = (REAL *)(scratch + plan->between),
    };
}

static void NAME(forward)(const struct work *work, struct trace *trace)
{
    const struct NAME(network) net = NAME(network_of)(work, trace);
    NAME(network_forward)(&net);
}

static void NAME(backward)(const struct work *work, struct trace *trace)
{
    const struct NAME(network) net = NAME(network_of)(work, trace);
    NAME(network_backward)
    (&net, work->input[TENSOR_OUTPUT], work->result[TENSOR_INPUT], work->result[TENSOR_WEIGHT]);
}

#else

/* Offsets of the network's arrays in the scratch memory, byte. */
struct plain_plan {
    size_t y, units, h, dout, dsums, carried, between;
};

static void loop_run(void *trace, const char *name, int64_t count,
                     void (*task)(void *context, int64_t i), void *context)
{
    double begin = trace_begin(trace);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; ++i)
        task(context, i);
    trace_end(trace, name, begin);
}

#define REAL_TEMPLATE "worker/cpu/lstm.c"
#include "worker/cpu/real.h"

CPU_SHAPE(lstm)

static void lstm_gradient_shape(const struct work *work, int64_t *sample, int64_t *batch)
{
    const struct lstm *s = work->shape;
    *sample = s->output * s->directions;
    *batch = s->batch; /* a batch is one time step */
}

static enum status plain_plan(struct work *work, struct error *error)
{
    (void)error;
    struct plain_plan *plan = work->plan;
    const struct lstm *s = work->shape;
    const bool backward = s->pass == LSTM_BACKWARD;
    const size_t rows = (size_t)(s->sequence * s->batch) * work->element;
    const size_t output = rows * (size_t)(s->directions * s->output);
    const size_t units = rows * (size_t)(s->directions * s->hidden);
    const size_t layers = (size_t)s->layers;
    work->bound[TENSOR_OUTPUT] = true;
    plan->y = scratch_take(work, layers * output);
    plan->units = scratch_take(work, layers * units * (LSTM_SUMS + 1)); /* struct unit */
    plan->h = scratch_take(work, s->projection ? layers * units : 0);
    plan->dout = scratch_take(work, backward ? output : 0);
    plan->dsums = scratch_take(work, backward ? units * (size_t)s->cell->sums : 0);
    plan->carried = scratch_take(work, backward ? units / (size_t)s->sequence : 0);
    plan->between = scratch_take(work, backward && layers > 1 ? output : 0);
    return STATUS_OK;
}

static enum status plain_ready(struct work *work, struct error *error)
{
    const struct lstm *s = work->shape;
    const struct plain_plan *plan = work->plan;
    const size_t layer = (size_t)lstm_y_size(s) * work->element;
    (void)error;
    work->result[TENSOR_OUTPUT] = (char *)work->scratch + plan->y + (size_t)(s->layers - 1) * layer;
    return STATUS_OK;
}

static void plain_forward(struct work *work, struct trace *trace)
{
    (work->precision == PRECISION_FP64 ? forward_fp64 : forward_fp32)(work, trace);
}

static void plain_before(struct work *work)
{
    if (((const struct lstm *)work->shape)->pass == LSTM_BACKWARD)
        plain_forward(work, NULL);
}

static void plain_run(struct work *work, struct trace *trace)
{
    if (((const struct lstm *)work->shape)->pass == LSTM_FORWARD)
        plain_forward(work, trace);
    else
        (work->precision == PRECISION_FP64 ? backward_fp64 : backward_fp32)(work, trace);
}

#ifdef ROOFSWEEP_ONEDNN
/* A layer is one operation over all time steps and both directions. Weights are packed before the
 * timed run, as in frameworks that keep a model. Gradients are reordered to the user's layout
 * within the timed run. Members of type size_t are offsets in the scratch memory, byte. */
struct layer {
    struct onednn *forward, *backward; /* backward is NULL in a forward pass */
    size_t forward_memory, backward_memory;
    size_t output; /* not used in the last layer */
    size_t dinput; /* gradient of the layer's input; not used in the first layer */
};

struct onednn_layers {
    size_t zeros;         /* initial states of all layers */
    size_t dstates[2];    /* gradients of the initial states; nothing reads them */
    struct layer *layers; /* owned */
};

/* Returns the elements between the weights of both directions; any number for one direction. */
static int64_t direction_stride(const struct lstm *s, int64_t layer)
{
    return s->directions > 1 ? lstm_w_at(s, layer, 1, LSTM_BIAS) - lstm_w_at(s, layer, 0, LSTM_BIAS)
                             : lstm_w_size(s);
}

/* Returns a matrix of [direction][gate][output][input] as [1][direction][input][gate][output]. */
static struct onednn_tensor matrix_tensor(const struct lstm *s, int64_t layer, int64_t width,
                                          enum onednn_place place)
{
    int64_t stride = direction_stride(s, layer);
    return (struct onednn_tensor){place,
                                  s->precision,
                                  5,
                                  {1, s->directions, width, s->cell->gates, s->hidden},
                                  {s->directions * stride, stride, 1, s->hidden * width, width}};
}

/* Returns [1][direction][a][b] with strides a_apart and b_apart. */
static struct onednn_tensor weights_tensor(const struct lstm *s, int64_t layer,
                                           enum onednn_place place, int64_t a, int64_t a_apart,
                                           int64_t b, int64_t b_apart)
{
    int64_t stride = direction_stride(s, layer);
    return (struct onednn_tensor){place,
                                  s->precision,
                                  4,
                                  {1, s->directions, a, b},
                                  {s->directions * stride, stride, a_apart, b_apart}};
}

/* Initial states are zero. Without them, oneDNN 2.6.3 computes a wrong recurrent gradient. */
static struct onednn_tensor state_tensor(const struct lstm *s, int64_t width,
                                         enum precision precision)
{
    int64_t size = s->batch * width;
    return (struct onednn_tensor){ONEDNN_PLAIN,
                                  precision,
                                  4,
                                  {1, s->directions, s->batch, width},
                                  {s->directions * size, size, width, 1}};
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
    int64_t width = lstm_input_width(s, layer), steps = s->sequence;
    struct onednn_operation operation = {
        .kind = kinds[s->kind].kind,
        .function = kinds[s->kind].function,
        .pass = pass,
        .bidirectional = s->directions > 1,
        .tensors = {[ONEDNN_SOURCE] = onednn_matrices(s->precision, steps, s->batch, width),
                    [ONEDNN_WEIGHTS] = matrix_tensor(s, layer, width, ONEDNN_PACKED),
                    [ONEDNN_RECURRENT] = matrix_tensor(s, layer, s->output, ONEDNN_PACKED),
                    [ONEDNN_BIAS] = weights_tensor(s, layer, ONEDNN_PACKED, s->cell->sums,
                                                   s->hidden, s->hidden, 1),
                    [ONEDNN_DESTINATION] =
                        onednn_matrices(s->precision, steps, s->batch, s->output * s->directions),
                    [ONEDNN_STATE] = state_tensor(s, s->output, s->precision)},
    };
    struct onednn_tensor *tensors = operation.tensors;
    if (s->kind == LSTM_LSTM)
        tensors[ONEDNN_CELL] = state_tensor(s, s->hidden, PRECISION_FP32);
    if (s->projection)
        tensors[ONEDNN_PROJECTION] =
            weights_tensor(s, layer, ONEDNN_PACKED, s->hidden, 1, s->projection, s->hidden);
    if (pass != ONEDNN_BACKWARD)
        return operation;
    tensors[ONEDNN_DIFF_SOURCE] = tensors[ONEDNN_SOURCE];
    tensors[ONEDNN_DIFF_WEIGHTS] = matrix_tensor(s, layer, width, ONEDNN_REORDERED);
    tensors[ONEDNN_DIFF_RECURRENT] = matrix_tensor(s, layer, s->output, ONEDNN_REORDERED);
    tensors[ONEDNN_DIFF_BIAS] =
        weights_tensor(s, layer, ONEDNN_REORDERED, s->cell->sums, s->hidden, s->hidden, 1);
    tensors[ONEDNN_DIFF_DESTINATION] = tensors[ONEDNN_DESTINATION];
    tensors[ONEDNN_DIFF_STATE] = tensors[ONEDNN_STATE];
    tensors[ONEDNN_DIFF_CELL] = tensors[ONEDNN_CELL];
    return operation;
}

static enum status layer_plan(struct work *work, int64_t index, struct error *error)
{
    const struct lstm *s = work->shape;
    struct layer *layer = &((struct onednn_layers *)work->plan)->layers[index];
    bool backward = s->pass == LSTM_BACKWARD;
    struct onednn_operation operation =
        operation_of(s, index, backward ? ONEDNN_TRAINING : ONEDNN_INFERENCE);
    enum status status =
        onednn_create_for(work, &operation, NULL, &layer->forward, &layer->forward_memory, error);
    size_t steps = (size_t)(s->sequence * s->batch) * work->element;
    if (index < s->layers - 1)
        layer->output = scratch_take(work, steps * (size_t)(s->output * s->directions));
    if (status || !backward)
        return status;
    if (index > 0)
        layer->dinput = scratch_take(work, steps * (size_t)lstm_input_width(s, index));
    operation = operation_of(s, index, ONEDNN_BACKWARD);
    return onednn_create_for(work, &operation, layer->forward, &layer->backward,
                             &layer->backward_memory, error);
}

static enum status layers_plan(struct work *work, struct error *error)
{
    struct onednn_layers *plan = work->plan;
    const struct lstm *s = work->shape;
    if (s->projection && s->pass == LSTM_BACKWARD)
        return error_set(error, STATUS_UNSUPPORTED,
                         "oneDNN has no gradients of an LSTM with a projection");
    if (s->projection &&
        s->precision != PRECISION_FP32) /* oneDNN 2.6.3 has an error of 100 % here */
        return error_set(error, STATUS_UNSUPPORTED,
                         "oneDNN's LSTM with a projection is wrong in %s; use precision=fp32",
                         precision_info[s->precision].name);
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

static void layers_release(struct work *work)
{
    struct onednn_layers *plan = work->plan;
    for (int64_t i = 0; plan->layers && i < ((const struct lstm *)work->shape)->layers; ++i) {
        onednn_destroy(plan->layers[i].backward);
        onednn_destroy(plan->layers[i].forward);
    }
    free(plan->layers);
}

static char *weights_at(const struct work *work, void *weights, int64_t layer, enum lstm_part part)
{
    return (char *)weights + (size_t)lstm_w_at(work->shape, layer, 0, part) * work->element;
}

static enum status layer_ready(struct work *work, int64_t index, struct error *error)
{
    const struct onednn_layers *plan = work->plan;
    const struct layer *layer = &plan->layers[index], *below = layer - 1, *above = layer + 1;
    bool last = index == ((const struct lstm *)work->shape)->layers - 1;
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

static enum status layers_ready(struct work *work, struct error *error)
{
    enum status status = STATUS_OK;
    for (int64_t i = 0; !status && i < ((const struct lstm *)work->shape)->layers; ++i)
        status = layer_ready(work, i, error);
    return status;
}

static void layers_forward(struct work *work, struct trace *trace)
{
    const struct onednn_layers *plan = work->plan;
    for (int64_t i = 0; i < ((const struct lstm *)work->shape)->layers; ++i)
        onednn_run(plan->layers[i].forward, trace);
}

static void layers_before(struct work *work)
{
    if (((const struct lstm *)work->shape)->pass == LSTM_BACKWARD)
        layers_forward(work, NULL);
}

static void layers_run(struct work *work, struct trace *trace)
{
    const struct onednn_layers *plan = work->plan;
    const struct lstm *s = work->shape;
    if (s->pass == LSTM_FORWARD)
        layers_forward(work, trace);
    for (int64_t i = s->layers - 1; s->pass == LSTM_BACKWARD && i >= 0; --i)
        onednn_run(plan->layers[i].backward, trace);
}

static const char *layers_name(const struct work *work)
{
    const struct layer *first = ((const struct onednn_layers *)work->plan)->layers;
    return onednn_name(first->backward ? first->backward : first->forward);
}
#endif

const struct cpu_workload lstm_routines = {
    CPU_WORKLOAD(lstm),
    .gradient_shape = lstm_gradient_shape,
    .routines =
        {
#ifdef ROOFSWEEP_ONEDNN
            {.implementation = "onednn",
             .plan_size = sizeof(struct onednn_layers),
             .own_regions = true,
             .check = onednn_check,
             .plan = layers_plan,
             .ready = layers_ready,
             .before = layers_before,
             .run = layers_run,
             .release = layers_release,
             .name = layers_name},
#endif
            {.implementation = "plain",
             .algorithm = "direct",
             .plan_size = sizeof(struct plain_plan),
             .plan = plain_plan,
             .ready = plain_ready,
             .before = plain_before,
             .run = plain_run},
        },
};
#endif
