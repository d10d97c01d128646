#include "model/workloads/lstm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/reference.h"

/* FLOPs of a unit in a step, without matrix products. Forward:
 *   lstm  4: c = f c + i g, h = o tanh(c)
 *   gru   6: n + r q, (1 - z) n + z h
 * Backward, for gradients of sums + of biases, where d is the gradient of the output:
 *   lstm  22 + 4: 5 for the gradient of c, 1 for the previous step's c, 4 for each of four gates
 *   gru   17 + 4: d z, its addition to the previous step's d, d (1 - z) (1 - n n), d (h - n) z
 *         (1 - z), and the gradient of n times q r (1 - r), and times r
 *   tanh  3 + 1: d (1 - h h)
 *   relu  0 + 1 */
const struct lstm_cell lstm_cells[LSTM_KINDS] = {
    [LSTM_LSTM] = {"lstm", 4, 4, {0, 1, 2, 3}, {0, 1, 2, 3}, 5, 4.0, 26.0},
    [LSTM_GRU] = {"gru", 3, 4, {0, 1, 2, -1}, {0, 1, -1, 2}, 4, 6.0, 21.0},
    [LSTM_RELU] = {"relu", 1, 1, {0, -1, -1, -1}, {0, -1, -1, -1}, 0, 0.0, 1.0},
    [LSTM_TANH] = {"tanh", 1, 1, {0, -1, -1, -1}, {0, -1, -1, -1}, 0, 0.0, 4.0},
};

#define SHAPE struct lstm
/* clang-format off */
static const char *const lstm_cell_words[] = {"lstm", "gru", "relu", "tanh", NULL};
static const char *const lstm_implementation_words[] = {"auto", "cudnn", "onednn", "persistent",
                                                        "plain", NULL};
static const char *const lstm_algorithm_words[] = {"auto", "standard", "persist-static",
                                                   "persist-dynamic",
                                                   "persist-static-small-h", NULL};

static const struct parameter lstm_parameters[] = {
    WORKLOAD_ALGORITHM(lstm_algorithm_words),
    WORKLOAD_INTEGER("batch", 1048576, "16", "sequences", INTO(batch)),
    WORKLOAD_CACHE,
    WORKLOAD_LATER_SERIES("cell", lstm_cell_words, "lstm",
                          "cell of the layers; relu, tanh: a plain RNN with this activation",
                          INTO(kind)),
    WORKLOAD_INTEGER("directions", 2, "1", "1, or 2: bidirectional", INTO(directions)),
    WORKLOAD_INTEGER("features", 1048576, "32", "input width", INTO(features)),
    WORKLOAD_INTEGER("hidden", 1048576, "16", "hidden width", INTO(hidden)),
    WORKLOAD_IMPLEMENTATION(lstm_implementation_words),
    WORKLOAD_LAUNCH,
    WORKLOAD_INTEGER("layers", 1024, "1", "stacked layers", INTO(layers)),
    WORKLOAD_PASS(workload_directions, "what is computed; backward excludes the forward pass"),
    WORKLOAD_PRECISION("of the tensors and the multiplications"),
    WORKLOAD_LATER_INTEGER("projection", 0, 1048576, "0",
                           "width of an LSTM's projected output; 0: no projection",
                           INTO(projection)),
    WORKLOAD_INTEGER("sequence", 65536, "16", "time steps", INTO(sequence)),
};
/* clang-format on */

struct lstm lstm_from(const struct config *config)
{
    struct lstm s = {0};
    config_shape(config, &s);
    s.cell = &lstm_cells[s.kind];
    s.output = s.projection ? s.projection : s.hidden;
    return s;
}

static enum status lstm_check(const struct config *config, struct error *error)
{
    struct lstm s = lstm_from(config);
    if (s.projection && s.kind != LSTM_LSTM)
        return error_set(error, STATUS_UNSUPPORTED, "cell %s has no projection, only lstm has one",
                         s.cell->name);
    if (s.projection >= s.hidden && s.projection > 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "projection %lld: it must be less than hidden, %lld",
                         (long long)s.projection, (long long)s.hidden);
    if (s.kind == LSTM_RELU && s.pass == LSTM_BACKWARD && s.layers > 1)
        return error_set(error, STATUS_UNSUPPORTED,
                         "backward of %lld layers of cell relu: the units that were 0 below the "
                         "last layer are unknown, so the result cannot be verified",
                         (long long)s.layers);
    return STATUS_OK;
}

int64_t lstm_input_width(const struct lstm *s, int64_t layer)
{
    return layer == 0 ? s->features : s->output * s->directions;
}

int64_t lstm_x_size(const struct lstm *s)
{
    return s->sequence * s->batch * s->features;
}

int64_t lstm_y_size(const struct lstm *s)
{
    return s->sequence * s->batch * s->output * s->directions;
}

int64_t lstm_part_size(const struct lstm *s, int64_t layer, enum lstm_part part)
{
    const int64_t rows[LSTM_PARTS] = {
        [LSTM_INPUT_MATRIX] = s->cell->gates * lstm_input_width(s, layer),
        [LSTM_RECURRENT_MATRIX] = s->cell->gates * s->output,
        [LSTM_BIAS] = s->cell->sums,
        [LSTM_PROJECTION] = s->projection,
    };
    return rows[part] * s->hidden;
}

static int64_t lstm_cell_size(const struct lstm *s, int64_t layer)
{
    int64_t size = 0;
    for (int part = 0; part < LSTM_PARTS; ++part)
        size += lstm_part_size(s, layer, (enum lstm_part)part);
    return size;
}

int64_t lstm_w_at(const struct lstm *s, int64_t layer, int64_t direction, enum lstm_part part)
{
    /* All layers but the first have the same size. */
    int64_t offset = direction * lstm_cell_size(s, layer);
    if (layer > 0)
        offset += s->directions * (lstm_cell_size(s, 0) + (layer - 1) * lstm_cell_size(s, 1));
    for (int before = 0; before < (int)part; ++before)
        offset += lstm_part_size(s, layer, (enum lstm_part)before);
    return offset;
}

int64_t lstm_w_size(const struct lstm *s)
{
    return lstm_w_at(s, s->layers, 0, LSTM_INPUT_MATRIX);
}

/* FLOPs for each unit and step, with the input width I, R outputs, G gates and a projection to P:
 *   forward   2 G (I + R) + 2 P in the products, bias included, plus forward_flops of the cell
 *   backward  twice the products, for data and weights, plus backward_flops of the cell, plus the
 *             addition of the later step's gradient to the output's
 * Sigmoids, hyperbolic tangents and maxima count no FLOPs. Backward also reads what the training
 * forward pass keeps: `kept` values of the cell, the output, the input of a projection. */
static struct cost lstm_cost(const struct config *config)
{
    const struct lstm s = lstm_from(config);
    const bool forward = s.pass == LSTM_FORWARD;
    const double bytes = config_tensor_bytes(config), output = (double)s.output;
    const double element = (double)precision_info[s.precision].bytes, y = (double)lstm_y_size(&s);
    const double cells = y / output * (double)s.hidden;
    const double kept = (cells * (s.cell->kept + (s.projection > 0)) + y) * (double)s.layers;
    double flops = 0.0;
    for (int64_t layer = 0; layer < s.layers; ++layer) {
        double products = 2.0 * s.cell->gates * ((double)lstm_input_width(&s, layer) + output) +
                          2.0 * (double)s.projection;
        flops += cells * (forward ? products : 2.0 * products);
        flops += cells * (forward ? s.cell->forward_flops
                                  : s.cell->backward_flops + output / (double)s.hidden);
    }
    return (struct cost){
        .flops = flops,
        .bytes = bytes + (forward ? 0.0 : kept - y) * element,
        .memory = bytes + (forward ? 0.0 : kept) * element,
    };
}

/* A backward pass starts from the output of a training forward pass. */
static struct tensors lstm_tensors(const struct config *config)
{
    const struct lstm s = lstm_from(config);
    const bool backward = s.pass == LSTM_BACKWARD;
    const double x = (double)lstm_x_size(&s), w = (double)lstm_w_size(&s);
    const double y = (double)lstm_y_size(&s);
    return (struct tensors){
        .read = {[TENSOR_INPUT] = x, [TENSOR_WEIGHT] = w, [TENSOR_OUTPUT] = backward ? y : 0},
        .written = {[TENSOR_INPUT] = backward ? x : 0,
                    [TENSOR_WEIGHT] = backward ? w : 0,
                    [TENSOR_OUTPUT] = y},
    };
}

/* Weights are drawn from [-2^e, 2^e) with 2^e near 1 / sqrt(fan-in), as networks are initialised,
 * so that the gates neither saturate nor vanish. */
static int lstm_exponent(const struct config *config, enum tensor tensor)
{
    struct lstm s = lstm_from(config);
    return tensor == TENSOR_WEIGHT ? -(int)lround(log2(sqrt((double)(s.features + s.hidden)))) : 0;
}

/* Each step rounds the states. fp32 has no other rounding, so its tolerance detects multiplications
 * in a narrower format. A state of relu that is rounded to 0 loses its slope: a few such states
 * change a gradient by several per cent, in bf16 by 3 % for a batch of 16. */
static struct tolerance lstm_tolerance(const struct config *config)
{
    const struct lstm s = lstm_from(config);
    const bool slopes = s.kind == LSTM_RELU && s.pass == LSTM_BACKWARD;
    return s.precision == PRECISION_FP32   ? (struct tolerance){3e-5, 1e-4}
           : s.precision == PRECISION_FP16 ? (struct tolerance){1e-3, slopes ? 0.1 : 2e-3}
           : s.precision == PRECISION_BF16 ? (struct tolerance){8e-3, slopes ? 0.1 : 2e-2}
                                           : precision_info[s.precision].tolerance;
}

/* ---- the reference: some samples of the batch, all layers in fp64 ---- */

#define REAL       double
#define NAME(name) name
#include "model/workloads/lstm_network.h"

static void reference_run(void *argument, const char *name, int64_t count, reference_task *task,
                          void *context)
{
    const struct reference_request *request = argument;
    (void)name;
    request->loop(count, task, context);
}

static double *fill_create(struct fill fill, int64_t rows, int64_t columns, int64_t stride)
{
    /* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): at least 1 */
    double *data = malloc((size_t)(rows * columns) * sizeof *data);
    for (int64_t i = 0; data && i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            data[i * columns + j] = fill_value(fill, (uint64_t)(i * stride + j));
    return data;
}

static double *zeros_create(int64_t count)
{
    return calloc((size_t)count, sizeof(double));
}

enum status lstm_network_compute(const struct reference_request *request,
                                 const struct lstm_results *results, struct error *error)
{
    const struct config *config = results->config;
    const struct lstm s = lstm_from(config);
    const int64_t samples = results->samples, rows = s.sequence * samples;
    const int64_t cells = s.directions * rows * s.hidden;
    const int64_t width = s.output * s.directions, y_size = rows * width;
    double *w =
        fill_create(config_fill(config, results->seed, TENSOR_WEIGHT), 1, lstm_w_size(&s), 0);
    double *x = fill_create(config_fill(config, results->seed, TENSOR_INPUT), s.sequence,
                            samples * s.features, s.batch * s.features);
    double *dy = fill_create(config_fill(config, results->seed, TENSOR_OUTPUT), s.sequence,
                             samples * width, s.batch * width);
    struct network net = {
        .s = s,
        .samples = samples,
        .rows = rows,
        .loop = reference_run,
        .argument = (void *)(uintptr_t)request,
        .w = w,
        .x = x,
        .y = zeros_create(s.layers * y_size),
        .units = calloc((size_t)(s.layers * cells), sizeof(struct unit)),
        .h = zeros_create(s.projection ? s.layers * cells : 1),
        .dout = zeros_create(y_size),
        .dsums = zeros_create(cells * s.cell->sums),
        .carried = zeros_create(s.directions * samples * s.hidden),
        .between = zeros_create(y_size),
    };
    double *dw = zeros_create(results->dw ? lstm_w_size(&s) : 1);
    void *arrays[] = {w,  x,        dy,        net.y,       net.units,  net.h,
                      dw, net.dout, net.dsums, net.carried, net.between};
    enum { ARRAYS = sizeof arrays / sizeof *arrays };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ARRAYS; ++i)
        if (!arrays[i])
            status = error_set(error, STATUS_SYSTEM, "no memory for the reference of %lld samples",
                               (long long)samples);
    if (status == STATUS_OK) {
        network_forward(&net);
        const double *last = net.y + (s.layers - 1) * y_size;
        if (results->y)
            memcpy(results->y, last, (size_t)y_size * sizeof *last);
        /* The device's output decides which relu units of the last layer are on. */
        for (int64_t i = 0; results->seen && i < y_size; ++i) {
            int64_t cell = i % width / s.hidden * rows + i / width;
            net.units[(s.layers - 1) * cells + cell * s.hidden + i % s.hidden].sums[0] =
                results->seen[i];
        }
        if (s.pass == LSTM_BACKWARD && (results->dx || results->dw))
            network_backward(&net, dy, results->dx, results->dw ? dw : NULL);
        for (int64_t i = 0; i < results->dw_count; ++i)
            results->dw[i] = dw[results->dw_offsets ? results->dw_offsets[i] : i];
    }
    for (size_t i = 0; i < ARRAYS; ++i)
        free(arrays[i]);
    return status;
}

/* ---- compared elements ---- */

/* Sets the offsets of the elements [sequence][samples][width] in [sequence][batch][width]. */
static void sample_offsets(const struct lstm *s, int64_t samples, int64_t width, int64_t *offsets)
{
    for (int64_t t = 0; t < s->sequence; ++t)
        for (int64_t i = 0; i < samples * width; ++i)
            *offsets++ = t * s->batch * width + i;
}

/* Reads the device's output. Zeros show the units that a relu switched off: a sum just below zero
 * in fp64 may be just above zero in the device's precision. The caller owns *seen. */
static enum status output_read(const struct reference_request *request, const struct lstm *s,
                               int64_t samples, double **seen, struct error *error)
{
    int64_t width = s->output * s->directions, count = s->sequence * samples * width;
    int64_t *offsets = malloc((size_t)count * sizeof *offsets);
    double *values = malloc((size_t)count * sizeof *values);
    enum status status = STATUS_OK;
    if (!offsets || !values)
        status =
            error_set(error, STATUS_FAILED, "no memory to verify %lld elements", (long long)count);
    else
        sample_offsets(s, samples, width, offsets);
    if (status == STATUS_OK)
        status = request->read(request->context, TENSOR_OUTPUT, offsets, count, values, error);
    free(offsets);
    if (status)
        free(values);
    else
        *seen = values;
    return status;
}

/* Selects places of the weights' gradient, and divides them into parts, because the gradients of
 * gates, matrices and biases differ by orders of magnitude. */
static enum status weights_divide(const struct reference_request *request, const struct lstm *s,
                                  struct expectation *expectation, struct slice **weights,
                                  struct error *error)
{
    const int runs[LSTM_PARTS] = {
        [LSTM_INPUT_MATRIX] = s->cell->gates,
        [LSTM_RECURRENT_MATRIX] = s->cell->gates,
        [LSTM_BIAS] = s->cell->sums,
        [LSTM_PROJECTION] = s->projection > 0,
    };
    int64_t parts = 0, most = request->most;
    for (int part = 0; part < LSTM_PARTS; ++part)
        parts += s->layers * s->directions * runs[part];
    int64_t room = (int64_t)fmin((double)lstm_w_size(s), (double)parts * (double)most);
    TRY(expectation_add(expectation, TENSOR_WEIGHT, room, weights, error));
    struct slice *slice = *weights;
    slice->count = 0;
    slice->ends = malloc((size_t)parts * sizeof *slice->ends);
    if (!slice->ends)
        return error_set(error, STATUS_FAILED, "no memory for the parts of the weights");
    for (int64_t layer = 0; layer < s->layers; ++layer)
        for (int64_t direction = 0; direction < s->directions; ++direction)
            for (int part = 0; part < LSTM_PARTS; ++part)
                for (int run = 0; run < runs[part]; ++run) {
                    const int64_t size =
                        lstm_part_size(s, layer, (enum lstm_part)part) / runs[part];
                    const int64_t begin =
                        lstm_w_at(s, layer, direction, (enum lstm_part)part) + run * size;
                    const int64_t count = size < most ? size : most;
                    places_spread(slice->offsets + slice->count, count, begin, size, request->seed);
                    slice->ends[slice->parts++] = slice->count += count;
                }
    return STATUS_OK;
}

/* Computes y (forward), or dx and dw (backward), of whole samples, as many as request->products
 * allows: an element depends on all earlier steps of its sample. */
static enum status lstm_reference(const struct reference_request *request,
                                  struct expectation *expectation, struct error *error)
{
    struct lstm s = lstm_from(request->config);
    bool forward = s.pass == LSTM_FORWARD;
    double sample = config_cost(request->config).flops / 2.0 / (double)s.batch;
    int64_t samples = (int64_t)fmin(fmax(request->products / sample, 1.0), (double)s.batch);
    int64_t width = forward ? s.output * s.directions : s.features;
    struct slice *first = NULL, *weights = NULL;
    double *seen = NULL;
    enum status status = expectation_add(expectation, forward ? TENSOR_OUTPUT : TENSOR_INPUT,
                                         s.sequence * samples * width, &first, error);
    if (status == STATUS_OK && !forward)
        status = weights_divide(request, &s, expectation, &weights, error);
    if (status == STATUS_OK && !forward && s.kind == LSTM_RELU)
        status = output_read(request, &s, samples, &seen, error);
    TRY(status);
    sample_offsets(&s, samples, width, first->offsets);
    expectation->samples = samples;
    const struct lstm_results results = {
        .config = request->config,
        .seed = request->seed,
        .samples = samples,
        .seen = seen,
        .y = forward ? first->expected : NULL,
        .dx = forward ? NULL : first->expected,
        .dw = weights ? weights->expected : NULL,
        .dw_count = weights ? weights->count : 0,
        .dw_offsets = weights ? weights->offsets : NULL,
    };
    status =
        request->compute ? request->compute(request->context, &results, error) : STATUS_UNSUPPORTED;
    if (status == STATUS_UNSUPPORTED)
        status = lstm_network_compute(request, &results, error);
    free(seen);
    return status;
}

const struct workload lstm_workload = {
    .name = "lstm",
    WORKLOAD_TABLE(lstm_parameters),
    .check = lstm_check,
    .cost = lstm_cost,
    .tensors = lstm_tensors,
    .exponent = lstm_exponent,
    .reference = lstm_reference,
    .tolerance = lstm_tolerance,
};
