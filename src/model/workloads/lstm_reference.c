#include "model/workloads/lstm_reference.h"

#include <math.h>
#include <stdlib.h>

#include "model/workloads/lstm.h"

/* All arrays are owned and hold the first `samples` of the batch, N of them; D directions, H
 * hidden. */
struct network {
    struct lstm s;
    int64_t samples;
    reference_loop *loop;
    double *w;         /* all of it */
    double *x;         /* [T][N][features] */
    double *y;         /* [layer][T][N][D * H] */
    double *gates, *c; /* [layer][D][T][N][4][H], [layer][D][T][N][H] */
    double *dy, *dx;   /* of one layer: [T][N][D * H], [T][N][widest input] */
    double *dgates;    /* of one layer: [D][T][N][4][H] */
    double *dc;        /* from the later step: [D][N][H] */
};

static double *fill_create(struct fill fill, int64_t rows, int64_t columns, int64_t stride)
{
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

static void network_clear(struct network *net)
{
    double *arrays[] = {net->w,  net->x,  net->y,      net->gates, net->c,
                        net->dy, net->dx, net->dgates, net->dc};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i)
        free(arrays[i]);
}

static enum status network_init(struct network *net, const struct config *config, uint64_t seed,
                                int64_t samples, reference_loop *loop, struct error *error)
{
    struct lstm s = lstm_from(config);
    int64_t cells = s.directions * s.sequence * samples * s.hidden, width = s.hidden * s.directions;
    int64_t rows = s.sequence, widest = s.features > width ? s.features : width;
    *net = (struct network){
        .s = s,
        .samples = samples,
        .loop = loop,
        .w = fill_create(config_fill(config, seed, TENSOR_WEIGHT), 1, lstm_w_size(&s), 0),
        .x = fill_create(config_fill(config, seed, TENSOR_INPUT), rows, samples * s.features,
                         s.batch * s.features),
        .y = zeros_create(s.layers * cells),
        .gates = zeros_create(s.layers * cells * 4),
        .c = zeros_create(s.layers * cells),
        .dy = fill_create(config_fill(config, seed, TENSOR_OUTPUT), rows, samples * width,
                          s.batch * width),
        .dx = zeros_create(rows * samples * widest),
        .dgates = zeros_create(cells * 4),
        .dc = zeros_create(s.directions * samples * s.hidden),
    };
    if (net->w && net->x && net->y && net->gates && net->c && net->dy && net->dx && net->dgates &&
        net->dc)
        return STATUS_OK;
    network_clear(net);
    return error_set(error, STATUS_SYSTEM, "no memory for the reference of %lld samples",
                     (long long)samples);
}

/* Index of a cell among those of its layer; of its unit 0. */
static int64_t cell_at(const struct network *net, int64_t direction, int64_t t, int64_t n)
{
    return ((direction * net->s.sequence + t) * net->samples + n) * net->s.hidden;
}

static int64_t layer_cells(const struct network *net)
{
    return net->s.directions * net->s.sequence * net->samples * net->s.hidden;
}

static int64_t y_width(const struct network *net)
{
    return net->s.hidden * net->s.directions;
}

static const double *layer_input(const struct network *net, int64_t layer)
{
    return layer == 0 ? net->x : net->y + (layer - 1) * layer_cells(net);
}

static const double *part(const struct network *net, int64_t layer, int64_t direction,
                          enum lstm_part which)
{
    return net->w + lstm_w_at(&net->s, layer, direction, which);
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; ++i)
        sum += a[i] * b[i];
    return sum;
}

static double sigmoid(double v)
{
    return 1.0 / (1.0 + exp(-v));
}

/* One unit of one sample at step t; `before` is the step that the direction comes from. */
static void forward_unit(struct network *net, int64_t layer, int64_t direction, int64_t t,
                         int64_t before, int64_t n, int64_t u)
{
    const struct lstm *s = &net->s;
    int64_t hidden = s->hidden, width = lstm_input_width(s, layer);
    const double *input = layer_input(net, layer) + (t * net->samples + n) * width;
    double *y = net->y + layer * layer_cells(net) + direction * hidden;
    double *c = net->c + layer * layer_cells(net);
    double *gates = net->gates + (layer * layer_cells(net) + cell_at(net, direction, t, n)) * 4;
    bool first = before < 0 || before >= s->sequence;
    double sums[4];
    for (int64_t gate = 0; gate < 4; ++gate) {
        int64_t row = gate * hidden + u;
        sums[gate] =
            part(net, layer, direction, LSTM_BIAS)[row] +
            dot(part(net, layer, direction, LSTM_INPUT_MATRIX) + row * width, input, width);
        if (!first)
            sums[gate] += dot(part(net, layer, direction, LSTM_RECURRENT_MATRIX) + row * hidden,
                              y + (before * net->samples + n) * y_width(net), hidden);
    }
    double i = sigmoid(sums[0]), f = sigmoid(sums[1]), g = tanh(sums[2]), o = sigmoid(sums[3]);
    double c_before = first ? 0.0 : c[cell_at(net, direction, before, n) + u];
    double c_now = f * c_before + i * g;
    c[cell_at(net, direction, t, n) + u] = c_now;
    y[(t * net->samples + n) * y_width(net) + u] = o * tanh(c_now);
    gates[u] = i;
    gates[hidden + u] = f;
    gates[2 * hidden + u] = g;
    gates[3 * hidden + u] = o;
}

/* One time step of a layer, or a layer's gradients: what the tasks of a loop share. */
struct layer {
    struct network *net;
    int64_t layer, step;
    double *dw;
};

/* A task is one unit of one sample in one direction. */
static void forward_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct lstm *s = &at->net->s;
    int64_t u = i % s->hidden, n = i / s->hidden % at->net->samples;
    int64_t direction = i / s->hidden / at->net->samples;
    int64_t t = direction ? s->sequence - 1 - at->step : at->step;
    forward_unit(at->net, at->layer, direction, t, direction ? t + 1 : t - 1, n, u);
}

static void forward_layer(struct network *net, int64_t layer)
{
    struct layer at = {.net = net, .layer = layer};
    int64_t units = net->s.directions * net->samples * net->s.hidden;
    for (at.step = 0; at.step < net->s.sequence; ++at.step)
        net->loop(units, forward_task, &at);
}

/* `after` is the step that the direction goes to; its gate gradients are complete. */
static void backward_unit(struct network *net, int64_t layer, int64_t direction, int64_t t,
                          int64_t before, int64_t after, int64_t n, int64_t u)
{
    const struct lstm *s = &net->s;
    int64_t hidden = s->hidden, at = cell_at(net, direction, t, n);
    const double *c = net->c + layer * layer_cells(net);
    const double *gates = net->gates + (layer * layer_cells(net) + at) * 4;
    double dh = net->dy[(t * net->samples + n) * y_width(net) + direction * hidden + u];
    double *dc_carried = net->dc + (direction * net->samples + n) * hidden + u;
    double dc = 0.0;
    if (after >= 0 && after < s->sequence) {
        const double *later = net->dgates + cell_at(net, direction, after, n) * 4;
        const double *matrix = part(net, layer, direction, LSTM_RECURRENT_MATRIX);
        for (int64_t row = 0; row < 4 * hidden; ++row)
            dh += later[row] * matrix[row * hidden + u];
        dc = *dc_carried;
    }
    double i = gates[u], f = gates[hidden + u], g = gates[2 * hidden + u],
           o = gates[3 * hidden + u];
    double tanh_c = tanh(c[at + u]);
    bool first = before < 0 || before >= s->sequence;
    double c_before = first ? 0.0 : c[cell_at(net, direction, before, n) + u];
    dc += dh * o * (1.0 - tanh_c * tanh_c);
    *dc_carried = dc * f;
    double *dgates = net->dgates + at * 4;
    dgates[u] = dc * g * i * (1.0 - i);
    dgates[hidden + u] = dc * c_before * f * (1.0 - f);
    dgates[2 * hidden + u] = dc * i * (1.0 - g * g);
    dgates[3 * hidden + u] = dh * tanh_c * o * (1.0 - o);
}

static void backward_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct lstm *s = &at->net->s;
    int64_t u = i % s->hidden, n = i / s->hidden % at->net->samples;
    int64_t direction = i / s->hidden / at->net->samples, ahead = direction ? -1 : 1;
    int64_t t = direction ? s->sequence - 1 - at->step : at->step;
    backward_unit(at->net, at->layer, direction, t, t - ahead, t + ahead, n, u);
}

static void row_add(double *row, double factor, const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        row[i] += factor * values[i];
}

static void row_clear(double *row, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        row[i] = 0.0;
}

/* The gradients of a layer's three parts of w. A task is one row of each, which belongs to one gate
 * of one unit. */
static void weights_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct network *net = at->net;
    const struct lstm *s = &net->s;
    int64_t direction = i / (4 * s->hidden), row = i % (4 * s->hidden);
    int64_t hidden = s->hidden, width = lstm_input_width(s, at->layer);
    const double *y = net->y + at->layer * layer_cells(net) + direction * hidden;
    double *input = at->dw + lstm_w_at(s, at->layer, direction, LSTM_INPUT_MATRIX) + row * width;
    double *recurrent =
        at->dw + lstm_w_at(s, at->layer, direction, LSTM_RECURRENT_MATRIX) + row * hidden;
    double *bias = at->dw + lstm_w_at(s, at->layer, direction, LSTM_BIAS) + row;
    row_clear(input, width);
    row_clear(recurrent, hidden);
    *bias = 0.0;
    for (int64_t cell = 0; cell < s->sequence * net->samples; ++cell) {
        int64_t t = cell / net->samples, n = cell % net->samples;
        int64_t before = direction ? t + 1 : t - 1;
        double d = net->dgates[cell_at(net, direction, t, n) * 4 + row];
        row_add(input, d, layer_input(net, at->layer) + cell * width, width);
        if (before >= 0 && before < s->sequence)
            row_add(recurrent, d, y + (before * net->samples + n) * y_width(net), hidden);
        *bias += d;
    }
}

/* A task is one sample of one time step. */
static void input_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct network *net = at->net;
    const struct lstm *s = &net->s;
    int64_t width = lstm_input_width(s, at->layer);
    double *dx = net->dx + i * width;
    row_clear(dx, width);
    for (int64_t direction = 0; direction < s->directions; ++direction) {
        const double *matrix = part(net, at->layer, direction, LSTM_INPUT_MATRIX);
        const double *d =
            net->dgates + cell_at(net, direction, i / net->samples, i % net->samples) * 4;
        for (int64_t row = 0; row < 4 * s->hidden; ++row)
            row_add(dx, d[row], matrix + row * width, width);
    }
}

/* Takes dy, leaves dx and this layer's part of dw (NULL: not wanted). */
static void backward_layer(struct network *net, int64_t layer, double *dw)
{
    const struct lstm *s = &net->s;
    struct layer at = {.net = net, .layer = layer, .dw = dw};
    int64_t units = s->directions * net->samples * s->hidden;
    for (at.step = s->sequence - 1; at.step >= 0; --at.step)
        net->loop(units, backward_task, &at);
    if (dw)
        net->loop(s->directions * 4 * s->hidden, weights_task, &at);
    net->loop(s->sequence * net->samples, input_task, &at);
}

static void copy(double *to, const double *from, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        to[i] = from[i];
}

enum status lstm_reference_compute(const struct config *config, uint64_t seed, int64_t samples,
                                   reference_loop *loop, double *y, double *dx, double *dw,
                                   struct error *error)
{
    struct network net;
    enum status status = network_init(&net, config, seed, samples, loop, error);
    if (status)
        return status;
    const struct lstm *s = &net.s;
    for (int64_t layer = 0; layer < s->layers; ++layer)
        forward_layer(&net, layer);
    if (y)
        copy(y, net.y + (s->layers - 1) * layer_cells(&net), layer_cells(&net));
    if (s->pass == LSTM_BACKWARD && (dx || dw)) {
        for (int64_t layer = s->layers - 1; layer >= 0; --layer) {
            backward_layer(&net, layer, dw);
            if (layer > 0) /* what comes out of a layer goes into the one below: same width */
                copy(net.dy, net.dx, layer_cells(&net));
        }
        if (dx)
            copy(dx, net.dx, s->sequence * samples * s->features);
    }
    network_clear(&net);
    return STATUS_OK;
}

/* The reference's [sequence][samples][width] as offsets into the device's
 * [sequence][batch][width]. */
static void sample_offsets(const struct lstm *s, int64_t samples, int64_t width, int64_t *offsets)
{
    for (int64_t t = 0; t < s->sequence; ++t)
        for (int64_t i = 0; i < samples * width; ++i)
            *offsets++ = t * s->batch * width + i;
}

enum status lstm_reference(const struct reference_request *request, struct expectation *expectation,
                           struct error *error)
{
    struct lstm s = lstm_from(request->config);
    bool forward = s.pass == LSTM_FORWARD;
    double sample = config_cost(request->config).flops / 2.0 / (double)s.batch;
    int64_t samples = (int64_t)fmin(fmax(request->products / sample, 1.0), (double)s.batch);
    int64_t width = forward ? s.hidden * s.directions : s.features;
    struct slice *first = NULL, *weights = NULL;
    enum status status = expectation_add(expectation, forward ? TENSOR_OUTPUT : TENSOR_INPUT,
                                         s.sequence * samples * width, &first, error);
    if (status == STATUS_OK && !forward)
        status = expectation_add(expectation, TENSOR_WEIGHT, lstm_w_size(&s), &weights, error);
    if (status)
        return status;
    sample_offsets(&s, samples, width, first->offsets);
    for (int64_t i = 0; weights && i < weights->count; ++i)
        weights->offsets[i] = i;
    expectation->samples = samples;
    return lstm_reference_compute(
        request->config, request->seed, samples, request->loop, forward ? first->expected : NULL,
        forward ? NULL : first->expected, weights ? weights->expected : NULL, error);
}
