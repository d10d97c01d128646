#include "model/workloads/lstm_network.h"

#include <math.h>
#include <stdlib.h>

#include "model/workloads/lstm.h"
#include "model/workloads/lstm_unit.h"

/* All arrays are owned and hold the first `samples` of the batch, N of them; D directions, H hidden, R
 * outputs of a direction. */
struct network {
    struct lstm s;
    int64_t samples;
    reference_loop *loop;
    double *w;               /* all of it */
    double *x;               /* [T][N][features] */
    double *y;               /* [layer][T][N][D * R] */
    struct lstm_unit *units; /* [layer][D][T][N][H] */
    double *h;               /* of each unit, before the projection */
    double *dy, *dx;         /* of one layer: [T][N][D * R], [T][N][widest input] */
    double *dout;            /* of one layer: of its outputs, [D][T][N][R] */
    double *dsums;           /* of one layer: [D][T][N][sums][H] */
    double *carried;         /* from the later step: [D][N][H] */
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
    void *arrays[] = {net->w,  net->x,  net->y,    net->units, net->h,
                      net->dy, net->dx, net->dout, net->dsums, net->carried};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i)
        free(arrays[i]);
}

static enum status network_init(struct network *net, const struct config *config, uint64_t seed,
                                int64_t samples, reference_loop *loop, struct error *error)
{
    struct lstm s = lstm_from(config);
    int64_t steps = s.sequence * samples, cells = s.directions * steps * s.hidden;
    int64_t width = s.output * s.directions, widest = s.features > width ? s.features : width;
    *net = (struct network){
        .s = s,
        .samples = samples,
        .loop = loop,
        .w = fill_create(config_fill(config, seed, TENSOR_WEIGHT), 1, lstm_w_size(&s), 0),
        .x = fill_create(config_fill(config, seed, TENSOR_INPUT), s.sequence, samples * s.features,
                         s.batch * s.features),
        .y = zeros_create(s.layers * steps * width),
        .units = calloc((size_t)(s.layers * cells), sizeof(struct lstm_unit)),
        .h = zeros_create(s.layers * cells),
        .dy = fill_create(config_fill(config, seed, TENSOR_OUTPUT), s.sequence, samples * width,
                          s.batch * width),
        .dx = zeros_create(steps * widest),
        .dout = zeros_create(steps * width),
        .dsums = zeros_create(cells * s.cell->sums),
        .carried = zeros_create(s.directions * samples * s.hidden),
    };
    if (net->w && net->x && net->y && net->units && net->h && net->dy && net->dx && net->dout &&
        net->dsums && net->carried)
        return STATUS_OK;
    network_clear(net);
    return error_set(error, STATUS_SYSTEM, "no memory for the reference of %lld samples",
                     (long long)samples);
}

/* Of a direction's sample at step t among all of a layer. */
static int64_t row_at(const struct network *net, int64_t direction, int64_t t, int64_t n)
{
    return (direction * net->s.sequence + t) * net->samples + n;
}

static int64_t layer_cells(const struct network *net)
{
    return net->s.directions * net->s.sequence * net->samples * net->s.hidden;
}

static int64_t y_width(const struct network *net)
{
    return net->s.output * net->s.directions;
}

static int64_t y_size(const struct network *net)
{
    return net->s.sequence * net->samples * y_width(net);
}

static const double *layer_input(const struct network *net, int64_t layer)
{
    return layer == 0 ? net->x : net->y + (layer - 1) * y_size(net);
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

static double column_dot(const double *a, const double *column, int64_t stride, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; ++i)
        sum += a[i] * column[i * stride];
    return sum;
}

/* What the tasks of a loop share: one time step of a layer, in each direction's own order, or a
 * layer's gradients. */
struct layer {
    struct network *net;
    int64_t layer, step;
    double *dw;
};

/* One sample of one direction; `width` tasks of each. */
struct place {
    int64_t direction, t, n, u;
    int64_t before, after; /* steps in the direction's own order */
};

static struct place place_find(const struct layer *at, int64_t width, int64_t i)
{
    int64_t direction = i / width / at->net->samples, ahead = direction ? -1 : 1;
    int64_t t = direction ? at->net->s.sequence - 1 - at->step : at->step;
    return (struct place){
        .direction = direction,
        .t = t,
        .n = i / width % at->net->samples,
        .u = i % width,
        .before = t - ahead,
        .after = t + ahead,
    };
}

static bool step_exists(const struct network *net, int64_t t)
{
    return t >= 0 && t < net->s.sequence;
}

static double sum_of(const struct layer *at, struct place p, int sum)
{
    const struct network *net = at->net;
    const struct lstm *s = &net->s;
    int input = s->cell->input[sum], recurrent = s->cell->recurrent[sum];
    int64_t width = lstm_input_width(s, at->layer);
    double value = part(net, at->layer, p.direction, LSTM_BIAS)[sum * s->hidden + p.u];
    if (input >= 0)
        value += dot(part(net, at->layer, p.direction, LSTM_INPUT_MATRIX) +
                         (input * s->hidden + p.u) * width,
                     layer_input(net, at->layer) + (p.t * net->samples + p.n) * width, width);
    if (recurrent >= 0 && step_exists(net, p.before))
        value += dot(part(net, at->layer, p.direction, LSTM_RECURRENT_MATRIX) +
                         (recurrent * s->hidden + p.u) * s->output,
                     net->y + at->layer * y_size(net) +
                         (p.before * net->samples + p.n) * y_width(net) + p.direction * s->output,
                     s->output);
    return value;
}

static double *y_at(const struct layer *at, struct place p)
{
    struct network *net = at->net;
    return net->y + at->layer * y_size(net) + (p.t * net->samples + p.n) * y_width(net) +
           p.direction * net->s.output + p.u;
}

/* The unit's state at the step before. */
static double state_before(const struct layer *at, struct place p)
{
    const struct network *net = at->net;
    int64_t row = row_at(net, p.direction, p.before, p.n);
    return step_exists(net, p.before)
               ? net->units[at->layer * layer_cells(net) + row * net->s.hidden + p.u].state
               : 0.0;
}

/* A task is one unit of one sample in one direction. */
static void forward_task(void *context, int64_t i)
{
    const struct layer *at = context;
    struct network *net = at->net;
    struct place p = place_find(at, net->s.hidden, i);
    int64_t cell =
        at->layer * layer_cells(net) + row_at(net, p.direction, p.t, p.n) * net->s.hidden + p.u;
    struct lstm_unit *unit = &net->units[cell];
    for (int sum = 0; sum < net->s.cell->sums; ++sum)
        unit->sums[sum] = sum_of(at, p, sum);
    net->h[cell] = lstm_unit_forward(net->s.kind, unit, state_before(at, p));
    if (!net->s.projection)
        *y_at(at, p) = net->h[cell];
}

static const double *h_at(const struct layer *at, struct place p)
{
    const struct network *net = at->net;
    return net->h + at->layer * layer_cells(net) +
           row_at(net, p.direction, p.t, p.n) * net->s.hidden;
}

/* A task is one output of a projection. */
static void projection_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct lstm *s = &at->net->s;
    struct place p = place_find(at, s->output, i);
    *y_at(at, p) = dot(part(at->net, at->layer, p.direction, LSTM_PROJECTION) + p.u * s->hidden,
                       h_at(at, p), s->hidden);
}

static void forward_layer(struct network *net, int64_t layer)
{
    struct layer at = {.net = net, .layer = layer};
    int64_t rows = net->s.directions * net->samples;
    for (at.step = 0; at.step < net->s.sequence; ++at.step) {
        net->loop(rows * net->s.hidden, forward_task, &at);
        if (net->s.projection)
            net->loop(rows * net->s.output, projection_task, &at);
    }
}

/* The gradient of one output: from above, and from the later step's sums, which are complete. */
static void output_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct network *net = at->net;
    const struct lstm *s = &net->s;
    struct place p = place_find(at, s->output, i);
    const double *matrix = part(net, at->layer, p.direction, LSTM_RECURRENT_MATRIX) + p.u;
    double d = net->dy[(p.t * net->samples + p.n) * y_width(net) + p.direction * s->output + p.u];
    const double *later =
        net->dsums + row_at(net, p.direction, p.after, p.n) * s->cell->sums * s->hidden;
    for (int sum = 0; step_exists(net, p.after) && sum < s->cell->sums; ++sum)
        if (s->cell->recurrent[sum] >= 0)
            d += column_dot(later + sum * s->hidden,
                            matrix + s->cell->recurrent[sum] * s->hidden * s->output, s->output,
                            s->hidden);
    net->dout[row_at(net, p.direction, p.t, p.n) * s->output + p.u] = d;
}

/* A task is one unit of one sample in one direction. */
static void backward_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct network *net = at->net;
    const struct lstm *s = &net->s;
    struct place p = place_find(at, s->hidden, i);
    int64_t row = row_at(net, p.direction, p.t, p.n);
    const double *dout = net->dout + row * s->output;
    const double *matrix = part(net, at->layer, p.direction, LSTM_PROJECTION) + p.u;
    double d = s->projection ? column_dot(dout, matrix, s->hidden, s->output) : dout[p.u];
    double *carried = net->carried + (p.direction * net->samples + p.n) * s->hidden + p.u;
    double dsums[LSTM_SUMS];
    if (!step_exists(net, p.after))
        *carried = 0.0;
    lstm_unit_backward(s->kind, &net->units[at->layer * layer_cells(net) + row * s->hidden + p.u],
                       state_before(at, p), d, carried, dsums);
    for (int sum = 0; sum < s->cell->sums; ++sum)
        net->dsums[(row * s->cell->sums + sum) * s->hidden + p.u] = dsums[sum];
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

/* The row of a matrix that goes into a sum; NULL: it has none. */
static double *dw_row(const struct layer *at, struct place p, const int gates[LSTM_SUMS], int sum,
                      enum lstm_part which, int64_t width)
{
    const struct lstm *s = &at->net->s;
    double *row = at->dw + lstm_w_at(s, at->layer, p.direction, which);
    if (gates[sum] < 0)
        return NULL;
    row += (gates[sum] * s->hidden + p.u) * width;
    row_clear(row, width);
    return row;
}

/* The gradients of the rows of w behind one sum of a unit. A task is one of them. */
static void weights_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct network *net = at->net;
    const struct lstm *s = &net->s;
    int64_t sums = s->cell->sums * s->hidden, width = lstm_input_width(s, at->layer);
    int sum = (int)(i % sums / s->hidden);
    struct place p = {.direction = i / sums, .u = i % s->hidden};
    const double *y = net->y + at->layer * y_size(net) + p.direction * s->output;
    double *input = dw_row(at, p, s->cell->input, sum, LSTM_INPUT_MATRIX, width);
    double *recurrent = dw_row(at, p, s->cell->recurrent, sum, LSTM_RECURRENT_MATRIX, s->output);
    double *bias = at->dw + lstm_w_at(s, at->layer, p.direction, LSTM_BIAS) + i % sums;
    *bias = 0.0;
    for (int64_t cell = 0; cell < s->sequence * net->samples; ++cell) {
        int64_t t = cell / net->samples, n = cell % net->samples;
        int64_t before = p.direction ? t + 1 : t - 1;
        double d = net->dsums[row_at(net, p.direction, t, n) * sums + i % sums];
        if (input)
            row_add(input, d, layer_input(net, at->layer) + cell * width, width);
        if (recurrent && step_exists(net, before))
            row_add(recurrent, d, y + (before * net->samples + n) * y_width(net), s->output);
        *bias += d;
    }
}

/* A task is one row of a projection: that of one output. */
static void projection_weights_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct network *net = at->net;
    const struct lstm *s = &net->s;
    int64_t direction = i / s->output, output = i % s->output;
    double *row = at->dw + lstm_w_at(s, at->layer, direction, LSTM_PROJECTION) + output * s->hidden;
    const double *h = net->h + at->layer * layer_cells(net);
    row_clear(row, s->hidden);
    for (int64_t cell = 0; cell < s->sequence * net->samples; ++cell) {
        int64_t at_row = direction * s->sequence * net->samples + cell;
        row_add(row, net->dout[at_row * s->output + output], h + at_row * s->hidden, s->hidden);
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
        const double *d = net->dsums + row_at(net, direction, i / net->samples, i % net->samples) *
                                           s->cell->sums * s->hidden;
        for (int sum = 0; sum < s->cell->sums; ++sum)
            for (int64_t u = 0; s->cell->input[sum] >= 0 && u < s->hidden; ++u)
                row_add(dx, d[sum * s->hidden + u],
                        matrix + (s->cell->input[sum] * s->hidden + u) * width, width);
    }
}

/* Takes dy, leaves dx and this layer's part of dw (NULL: not wanted). */
static void backward_layer(struct network *net, int64_t layer, double *dw)
{
    const struct lstm *s = &net->s;
    struct layer at = {.net = net, .layer = layer, .dw = dw};
    int64_t rows = s->directions * net->samples;
    for (at.step = s->sequence - 1; at.step >= 0; --at.step) {
        net->loop(rows * s->output, output_task, &at);
        net->loop(rows * s->hidden, backward_task, &at);
    }
    if (dw)
        net->loop(s->directions * s->cell->sums * s->hidden, weights_task, &at);
    if (dw && s->projection)
        net->loop(s->directions * s->projection, projection_weights_task, &at);
    net->loop(s->sequence * net->samples, input_task, &at);
}

static void copy(double *to, const double *from, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        to[i] = from[i];
}

/* A unit of the last layer is on where the device has it on. */
static void network_switch(struct network *net, const double *seen)
{
    const struct lstm *s = &net->s;
    struct lstm_unit *units = net->units + (s->layers - 1) * layer_cells(net);
    for (int64_t i = 0; i < y_size(net); ++i) {
        int64_t row = i / y_width(net), direction = i % y_width(net) / s->hidden;
        int64_t at = (direction * s->sequence * net->samples + row) * s->hidden + i % s->hidden;
        units[at].sums[0] = seen[i];
    }
}

enum status lstm_network_compute(const struct config *config, uint64_t seed, int64_t samples,
                                 reference_loop *loop, const double *seen, double *y, double *dx,
                                 double *dw, struct error *error)
{
    struct network net;
    enum status status = network_init(&net, config, seed, samples, loop, error);
    if (status)
        return status;
    const struct lstm *s = &net.s;
    for (int64_t layer = 0; layer < s->layers; ++layer)
        forward_layer(&net, layer);
    if (y)
        copy(y, net.y + (s->layers - 1) * y_size(&net), y_size(&net));
    if (seen)
        network_switch(&net, seen);
    if (s->pass == LSTM_BACKWARD && (dx || dw)) {
        for (int64_t layer = s->layers - 1; layer >= 0; --layer) {
            backward_layer(&net, layer, dw);
            if (layer > 0) /* what comes out of a layer goes into the one below: same width */
                copy(net.dy, net.dx, y_size(&net));
        }
        if (dx)
            copy(dx, net.dx, s->sequence * samples * s->features);
    }
    network_clear(&net);
    return STATUS_OK;
}
