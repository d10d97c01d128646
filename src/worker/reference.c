#include "worker/reference.h"

#include <math.h>
#include <stdlib.h>

#include "model/workloads/conv2d.h"
#include "model/workloads/loop.h"
#include "model/workloads/lstm.h"
#include "model/workloads/matmul.h"
#include "worker/device_ops.h"
#include "model/fill.h"

#define ELEMENT              element
#define REAL                 double
#define SOURCE               struct fill
#define LOAD(source, offset) fill_value(source, (uint64_t)(offset))
#include "model/workloads/conv2d_element.h"

/* The two inputs of a pass, in the order of their tensors. */
static const enum tensor conv2d_inputs[][2] = {
    [CONV2D_FORWARD] = {TENSOR_INPUT, TENSOR_WEIGHT},
    [CONV2D_BACKWARD_DATA] = {TENSOR_WEIGHT, TENSOR_OUTPUT},
    [CONV2D_BACKWARD_FILTER] = {TENSOR_INPUT, TENSOR_OUTPUT},
};

void reference_conv2d(const struct config *config, uint64_t seed, const int64_t *offsets,
                      int64_t count, double *values)
{
    struct conv2d s = conv2d_from(config);
    struct fill first = device_fill(config, seed, conv2d_inputs[s.pass][0]);
    struct fill second = device_fill(config, seed, conv2d_inputs[s.pass][1]);
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < count; ++i)
        values[i] = element(&s, first, second, offsets[i]);
}

double reference_conv2d_cost(const struct config *config)
{
    struct conv2d s = conv2d_from(config);
    double taps = (double)(s.kernel_height * s.kernel_width);
    switch (s.pass) {
    case CONV2D_FORWARD:
        return taps * (double)(s.channels / s.groups);
    case CONV2D_BACKWARD_DATA:
        return taps * (double)(s.filters / s.groups);
    case CONV2D_BACKWARD_FILTER:
    default:
        return (double)s.batch * (double)s.out_height * (double)s.out_width;
    }
}

void reference_matmul(const struct config *config, uint64_t seed, const int64_t *offsets,
                      int64_t count, double *values)
{
    struct matmul s = matmul_from(config);
    struct fill x = device_fill(config, seed, TENSOR_INPUT);
    struct fill w = device_fill(config, seed, TENSOR_WEIGHT);
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < count; ++i) {
        int64_t row = offsets[i] / s.n, column = offsets[i] % s.n;
        double sum = 0.0;
        for (int64_t p = 0; p < s.k; ++p)
            sum += fill_value(x, (uint64_t)(row * s.k + p)) *
                   fill_value(w, (uint64_t)(p * s.n + column));
        values[i] = sum;
    }
}

/* What ends in element i began `steps` places further on, and has come one place nearer in each. */
void reference_loop(const struct config *config, uint64_t seed, const int64_t *offsets,
                    int64_t count, double *values)
{
    struct loop s = loop_from(config);
    struct fill x = device_fill(config, seed, TENSOR_INPUT);
    const double factor[2] = {loop_factor(s.precision, 0), loop_factor(s.precision, 1)};
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < count; ++i) {
        int64_t first = offsets[i] / s.tile * s.tile, at = (offsets[i] + s.steps) % s.tile;
        double value = fill_value(x, (uint64_t)(first + at));
        for (int64_t step = 0; step < s.steps; ++step) {
            at = at == 0 ? s.tile - 1 : at - 1;
            value = factor[step % 2] * value + fill_value(x, (uint64_t)(first + at));
        }
        values[i] = value;
    }
}

/* All arrays are owned and hold the first `samples` of the batch, N of them; D directions, H
 * hidden. */
struct network {
    struct lstm s;
    int64_t samples;
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
                                int64_t samples, struct error *error)
{
    struct lstm s = lstm_from(config);
    int64_t cells = s.directions * s.sequence * samples * s.hidden, width = s.hidden * s.directions;
    int64_t rows = s.sequence, widest = s.features > width ? s.features : width;
    *net = (struct network){
        .s = s,
        .samples = samples,
        .w = fill_create(device_fill(config, seed, TENSOR_WEIGHT), 1, lstm_w_size(&s), 0),
        .x = fill_create(device_fill(config, seed, TENSOR_INPUT), rows, samples * s.features,
                         s.batch * s.features),
        .y = zeros_create(s.layers * cells),
        .gates = zeros_create(s.layers * cells * 4),
        .c = zeros_create(s.layers * cells),
        .dy = fill_create(device_fill(config, seed, TENSOR_OUTPUT), rows, samples * width,
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

static void forward_layer(struct network *net, int64_t layer)
{
    const struct lstm *s = &net->s;
    for (int64_t step = 0; step < s->sequence; ++step)
#pragma omp parallel for collapse(3)
        for (int64_t direction = 0; direction < s->directions; ++direction)
            for (int64_t n = 0; n < net->samples; ++n)
                for (int64_t u = 0; u < s->hidden; ++u) {
                    int64_t t = direction ? s->sequence - 1 - step : step;
                    forward_unit(net, layer, direction, t, direction ? t + 1 : t - 1, n, u);
                }
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

/* The gradients of a layer's three parts of w; one row of each belongs to one gate of one unit. */
static void backward_weights(const struct network *net, int64_t layer, double *dw)
{
    const struct lstm *s = &net->s;
    int64_t hidden = s->hidden, width = lstm_input_width(s, layer);
    const double *y = net->y + layer * layer_cells(net);
#pragma omp parallel for collapse(2)
    for (int64_t direction = 0; direction < s->directions; ++direction)
        for (int64_t row = 0; row < 4 * hidden; ++row) {
            double *input = dw + lstm_w_at(s, layer, direction, LSTM_INPUT_MATRIX) + row * width;
            double *recurrent =
                dw + lstm_w_at(s, layer, direction, LSTM_RECURRENT_MATRIX) + row * hidden;
            double *bias = dw + lstm_w_at(s, layer, direction, LSTM_BIAS) + row;
            for (int64_t j = 0; j < width; ++j)
                input[j] = 0.0;
            for (int64_t j = 0; j < hidden; ++j)
                recurrent[j] = 0.0;
            *bias = 0.0;
            for (int64_t at = 0; at < s->sequence * net->samples; ++at) {
                int64_t t = at / net->samples, n = at % net->samples;
                int64_t before = direction ? t + 1 : t - 1;
                double d = net->dgates[cell_at(net, direction, t, n) * 4 + row];
                const double *x = layer_input(net, layer) + at * width;
                for (int64_t j = 0; j < width; ++j)
                    input[j] += d * x[j];
                if (before >= 0 && before < s->sequence)
                    for (int64_t j = 0; j < hidden; ++j)
                        recurrent[j] +=
                            d *
                            y[(before * net->samples + n) * y_width(net) + direction * hidden + j];
                *bias += d;
            }
        }
}

static void backward_input(struct network *net, int64_t layer)
{
    const struct lstm *s = &net->s;
    int64_t width = lstm_input_width(s, layer);
#pragma omp parallel for
    for (int64_t at = 0; at < s->sequence * net->samples; ++at) {
        double *dx = net->dx + at * width;
        for (int64_t j = 0; j < width; ++j)
            dx[j] = 0.0;
        for (int64_t direction = 0; direction < s->directions; ++direction) {
            const double *matrix = part(net, layer, direction, LSTM_INPUT_MATRIX);
            const double *d =
                net->dgates + cell_at(net, direction, at / net->samples, at % net->samples) * 4;
            for (int64_t row = 0; row < 4 * s->hidden; ++row)
                for (int64_t j = 0; j < width; ++j)
                    dx[j] += d[row] * matrix[row * width + j];
        }
    }
}

/* Takes dy, leaves dx and this layer's part of dw (NULL: not wanted). */
static void backward_layer(struct network *net, int64_t layer, double *dw)
{
    const struct lstm *s = &net->s;
    for (int64_t step = s->sequence - 1; step >= 0; --step)
#pragma omp parallel for collapse(3)
        for (int64_t direction = 0; direction < s->directions; ++direction)
            for (int64_t n = 0; n < net->samples; ++n)
                for (int64_t u = 0; u < s->hidden; ++u) {
                    int64_t t = direction ? s->sequence - 1 - step : step;
                    int64_t ahead = direction ? -1 : 1;
                    backward_unit(net, layer, direction, t, t - ahead, t + ahead, n, u);
                }
    if (dw)
        backward_weights(net, layer, dw);
    backward_input(net, layer);
}

static void copy(double *to, const double *from, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        to[i] = from[i];
}

enum status reference_lstm(const struct config *config, uint64_t seed, int64_t samples, double *y,
                           double *dx, double *dw, struct error *error)
{
    struct network net;
    enum status status = network_init(&net, config, seed, samples, error);
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
