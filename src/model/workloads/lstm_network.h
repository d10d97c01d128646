/* Recurrent layers from the definition: the template of the reference and of the CPU's plain
 * implementation. It may be included several times. The includer defines REAL, the type of all
 * values, and NAME(x), the name of x for that type.
 *
 * A network has the first `samples` of a batch. Tasks of one loop are independent of each other;
 * the loops run one after another. network_forward sets y and units; network_backward reads both,
 * and needs memory for the gradients.
 *
 * D directions, H hidden, R outputs of a direction. A row is a sample at one time step: the next
 * step of the sample is `samples` rows further on. */
#include <string.h>

#include "model/reference.h"
#include "model/workloads/lstm_unit.h"

/* Runs task(context, i) for each i below `count`, in any order. `name` is the region in traces. */
typedef void lstm_loop(void *argument, const char *name, int64_t count, reference_task *task,
                       void *context);

struct NAME(network) {
    struct lstm s;
    int64_t samples, rows;
    lstm_loop *loop;
    void *argument;            /* argument of `loop` */
    const REAL *w, *x;         /* x: [row][features] */
    REAL *y;                   /* [layer][row][D * R] */
    struct NAME(unit) * units; /* [layer][D][row][H] */
    REAL *h;                   /* [layer][D][row][H], before a projection; unused without one */
    /* Gradients within one layer. */
    REAL *dout;    /* gradient of the layer's outputs: [D][row][R] */
    REAL *dsums;   /* [D][row][sums][H] */
    REAL *carried; /* gradient of the states, from the later step: [D][samples][H] */
    /* gradient of the outputs of the layer below: [row][D * R]; unused by a single layer */
    REAL *between;
};

/* ---- one layer ---- */

/* The context of all tasks: a layer, and a step. Each direction counts steps in its own order. */
struct NAME(layer) {
    const struct NAME(network) * net;
    int64_t width; /* width of the layer's input */
    int64_t step;
    const REAL *x, *dy;
    REAL *y, *h, *dx;
    struct NAME(unit) * units;
    const REAL *w[2][LSTM_PARTS]; /* weights by direction */
    REAL *dw[2][LSTM_PARTS];
};

/* `dw`: the gradient of all weights, or NULL. */
static struct NAME(layer) NAME(layer_of)(const struct NAME(network) * net, int64_t layer, REAL *dw)
{
    const struct lstm *s = &net->s;
    int64_t y_size = net->rows * s->directions * s->output;
    int64_t cells = s->directions * net->rows * s->hidden;
    struct NAME(layer) at = {
        .net = net,
        .width = lstm_input_width(s, layer),
        .x = layer == 0 ? net->x : net->y + (layer - 1) * y_size,
        .y = net->y + layer * y_size,
        .h = s->projection ? net->h + layer * cells : NULL,
        .units = net->units + layer * cells,
    };
    for (int64_t direction = 0; direction < s->directions; ++direction)
        for (int part = 0; part < LSTM_PARTS; ++part) {
            int64_t offset = lstm_w_at(s, layer, direction, (enum lstm_part)part);
            at.w[direction][part] = net->w + offset;
            at.dw[direction][part] = dw ? dw + offset : NULL;
        }
    return at;
}

/* A unit or output of a sample in one direction, at the layer's step. */
struct NAME(place) {
    int64_t direction, n, u;
    int64_t row;           /* row of this step */
    int64_t before, after; /* rows of the previous and next step in the direction's order */
    int64_t cell;          /* index into arrays of [direction][row] */
};

/* Returns the place of task `i`; each sample and direction has `width` tasks. Samples are
 * innermost, so that the weights of a unit stay in the cache. */
static struct NAME(place) NAME(place_find)(const struct NAME(layer) * at, int64_t width, int64_t i)
{
    const struct NAME(network) *net = at->net;
    int64_t n = i % net->samples, direction = i / net->samples / width;
    int64_t row = (direction ? net->s.sequence - 1 - at->step : at->step) * net->samples + n;
    int64_t ahead = direction ? -net->samples : net->samples;
    return (struct NAME(place)){.direction = direction,
                                .n = n,
                                .u = i / net->samples % width,
                                .row = row,
                                .before = row - ahead,
                                .after = row + ahead,
                                .cell = direction * net->rows + row};
}

static bool NAME(row_exists)(const struct NAME(network) * net, int64_t row)
{
    return row >= 0 && row < net->rows;
}

static REAL NAME(dot)(const REAL *a, const REAL *b, int64_t count)
{
    REAL sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; ++i)
        sum += a[i] * b[i];
    return sum;
}

static void NAME(row_add)(REAL *restrict row, REAL factor, const REAL *restrict values,
                          int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; ++i)
        row[i] += factor * values[i];
}

static REAL *NAME(y_at)(const struct NAME(layer) * at, int64_t direction, int64_t row)
{
    const struct lstm *s = &at->net->s;
    return at->y + (row * s->directions + direction) * s->output;
}

/* Returns the unit's state at the previous step; 0 before the first. */
static REAL NAME(state_before)(const struct NAME(layer) * at, struct NAME(place) p)
{
    const struct NAME(network) *net = at->net;
    int64_t cell = p.direction * net->rows + p.before;
    return NAME(row_exists)(net, p.before) ? at->units[cell * net->s.hidden + p.u].state : 0;
}

/* ---- forward ---- */

/* Rows of a sums_task, few enough for their inputs to stay in a core's cache. */
enum { NAME(ROWS_BLOCK) = 16 };

/* A task sets the sums of a unit in a block of rows to bias plus input products. */
static void NAME(sums_task)(void *context, int64_t i)
{
    const struct NAME(layer) *at = context;
    const struct lstm *s = &at->net->s;
    const int64_t u = i % s->hidden, direction = i / s->hidden % s->directions;
    const int64_t first = i / s->hidden / s->directions * NAME(ROWS_BLOCK);
    const REAL *const *w = at->w[direction];
    for (int64_t row = first; row < first + NAME(ROWS_BLOCK) && row < at->net->rows; ++row)
        for (int sum = 0; sum < s->cell->sums; ++sum) {
            const int64_t input = s->cell->input[sum];
            REAL *value = &at->units[(direction * at->net->rows + row) * s->hidden + u].sums[sum];
            *value = w[LSTM_BIAS][sum * s->hidden + u];
            if (input >= 0)
                *value += NAME(dot)(w[LSTM_INPUT_MATRIX] + (input * s->hidden + u) * at->width,
                                    at->x + row * at->width, at->width);
        }
}

/* A task is one unit of one sample in one direction. */
static void NAME(forward_task)(void *context, int64_t i)
{
    const struct NAME(layer) *at = context;
    const struct lstm *s = &at->net->s;
    struct NAME(place) p = NAME(place_find)(at, s->hidden, i);
    const REAL *matrix = at->w[p.direction][LSTM_RECURRENT_MATRIX];
    int64_t cell = p.cell * s->hidden + p.u;
    struct NAME(unit) *unit = &at->units[cell];
    for (int sum = 0; sum < s->cell->sums && NAME(row_exists)(at->net, p.before); ++sum)
        if (s->cell->recurrent[sum] >= 0)
            unit->sums[sum] +=
                NAME(dot)(matrix + (s->cell->recurrent[sum] * s->hidden + p.u) * s->output,
                          NAME(y_at)(at, p.direction, p.before), s->output);
    REAL h = NAME(unit_forward)(s->kind, unit, NAME(state_before)(at, p));
    *(s->projection ? &at->h[cell] : &NAME(y_at)(at, p.direction, p.row)[p.u]) = h;
}

/* A task is one output of a projection. */
static void NAME(projection_task)(void *context, int64_t i)
{
    const struct NAME(layer) *at = context;
    const struct lstm *s = &at->net->s;
    struct NAME(place) p = NAME(place_find)(at, s->output, i);
    NAME(y_at)
    (at, p.direction, p.row)[p.u] = NAME(dot)(at->w[p.direction][LSTM_PROJECTION] + p.u * s->hidden,
                                              at->h + p.cell * s->hidden, s->hidden);
}

static void NAME(network_forward)(const struct NAME(network) * net)
{
    const int64_t rows = net->s.directions * net->samples;
    for (int64_t layer = 0; layer < net->s.layers; ++layer) {
        struct NAME(layer) at = NAME(layer_of)(net, layer, NULL);
        const int64_t blocks = (net->rows + NAME(ROWS_BLOCK) - 1) / NAME(ROWS_BLOCK);
        net->loop(net->argument, "lstm_input_forward", blocks * net->s.directions * net->s.hidden,
                  NAME(sums_task), &at);
        for (at.step = 0; at.step < net->s.sequence; ++at.step) {
            net->loop(net->argument, "lstm_step_forward", rows * net->s.hidden, NAME(forward_task),
                      &at);
            if (net->s.projection)
                net->loop(net->argument, "lstm_step_projection", rows * net->s.output,
                          NAME(projection_task), &at);
        }
    }
}

/* ---- backward ---- */

enum { NAME(OUTPUT_BLOCK) = 64 };

/* A task adds up the gradients of a block of outputs of one sample: those from the layer above, and
 * those from the sums of the next step. */
static void NAME(output_task)(void *context, int64_t i)
{
    const struct NAME(layer) *at = context;
    const struct NAME(network) *net = at->net;
    const struct lstm *s = &net->s;
    const int64_t block = NAME(OUTPUT_BLOCK), blocks = (s->output + block - 1) / block;
    struct NAME(place) p = NAME(place_find)(at, blocks, i);
    const int64_t first = p.u * block;
    const int64_t count = first + block < s->output ? block : s->output - first;
    const REAL *matrix = at->w[p.direction][LSTM_RECURRENT_MATRIX] + first;
    const REAL *later =
        net->dsums + (p.direction * net->rows + p.after) * s->cell->sums * s->hidden;
    REAL *d = net->dout + p.cell * s->output + first;
    memcpy(d, at->dy + (p.row * s->directions + p.direction) * s->output + first,
           (size_t)count * sizeof *d);
    for (int sum = 0; NAME(row_exists)(net, p.after) && sum < s->cell->sums; ++sum)
        for (int64_t u = 0; s->cell->recurrent[sum] >= 0 && u < s->hidden; ++u)
            NAME(row_add)
    (d, later[sum * s->hidden + u], matrix + (s->cell->recurrent[sum] * s->hidden + u) * s->output,
     count);
}

/* A task is one unit of one sample in one direction. */
static void NAME(backward_task)(void *context, int64_t i)
{
    const struct NAME(layer) *at = context;
    const struct NAME(network) *net = at->net;
    const struct lstm *s = &net->s;
    struct NAME(place) p = NAME(place_find)(at, s->hidden, i);
    const REAL *dout = net->dout + p.cell * s->output;
    const REAL *matrix = at->w[p.direction][LSTM_PROJECTION] + p.u;
    REAL *carried = net->carried + (p.direction * net->samples + p.n) * s->hidden + p.u;
    REAL d = s->projection ? 0 : dout[p.u], dsums[LSTM_SUMS] = {0};
    for (int64_t j = 0; j < s->projection; ++j)
        d += dout[j] * matrix[j * s->hidden];
    if (!NAME(row_exists)(net, p.after))
        *carried = 0;
    NAME(unit_backward)
    (s->kind, &at->units[p.cell * s->hidden + p.u], NAME(state_before)(at, p), d, carried, dsums);
    for (int sum = 0; sum < s->cell->sums; ++sum)
        net->dsums[(p.cell * s->cell->sums + sum) * s->hidden + p.u] = dsums[sum];
}

/* A task is one sum of a unit: its rows of both matrices, and its bias. */
static void NAME(weights_task)(void *context, int64_t i)
{
    const struct NAME(layer) *at = context;
    const struct NAME(network) *net = at->net;
    const struct lstm *s = &net->s;
    int64_t sums = s->cell->sums * s->hidden, direction = i / sums, u = i % s->hidden;
    int64_t step = direction ? net->samples : -net->samples; /* to the previous step's row */
    int input = s->cell->input[i % sums / s->hidden];
    int recurrent = s->cell->recurrent[i % sums / s->hidden];
    REAL *inputs = at->dw[direction][LSTM_INPUT_MATRIX] + (input * s->hidden + u) * at->width;
    REAL *outputs =
        at->dw[direction][LSTM_RECURRENT_MATRIX] + (recurrent * s->hidden + u) * s->output;
    REAL *bias = at->dw[direction][LSTM_BIAS] + i % sums;
    *bias = 0;
    if (input >= 0)
        memset(inputs, 0, (size_t)at->width * sizeof *inputs);
    if (recurrent >= 0)
        memset(outputs, 0, (size_t)s->output * sizeof *outputs);
    for (int64_t row = 0; row < net->rows; ++row) {
        REAL d = net->dsums[(direction * net->rows + row) * sums + i % sums];
        if (input >= 0)
            NAME(row_add)(inputs, d, at->x + row * at->width, at->width);
        if (recurrent >= 0 && NAME(row_exists)(net, row + step))
            NAME(row_add)(outputs, d, NAME(y_at)(at, direction, row + step), s->output);
        *bias += d;
    }
}

/* A task is one output: one row of the projection. */
static void NAME(projection_weights_task)(void *context, int64_t i)
{
    const struct NAME(layer) *at = context;
    const struct NAME(network) *net = at->net;
    const struct lstm *s = &net->s;
    int64_t direction = i / s->output, output = i % s->output;
    REAL *weights = at->dw[direction][LSTM_PROJECTION] + output * s->hidden;
    memset(weights, 0, (size_t)s->hidden * sizeof *weights);
    for (int64_t cell = direction * net->rows; cell < (direction + 1) * net->rows; ++cell)
        NAME(row_add)
    (weights, net->dout[cell * s->output + output], at->h + cell * s->hidden, s->hidden);
}

/* A task is one row. */
static void NAME(input_task)(void *context, int64_t row)
{
    const struct NAME(layer) *at = context;
    const struct NAME(network) *net = at->net;
    const struct lstm *s = &net->s;
    REAL *dx = at->dx + row * at->width;
    memset(dx, 0, (size_t)at->width * sizeof *dx);
    for (int64_t direction = 0; direction < s->directions; ++direction) {
        const REAL *matrix = at->w[direction][LSTM_INPUT_MATRIX];
        const REAL *d = net->dsums + (direction * net->rows + row) * s->cell->sums * s->hidden;
        for (int sum = 0; sum < s->cell->sums; ++sum)
            for (int64_t u = 0; s->cell->input[sum] >= 0 && u < s->hidden; ++u)
                NAME(row_add)
        (dx, d[sum * s->hidden + u], matrix + (s->cell->input[sum] * s->hidden + u) * at->width,
         at->width);
    }
}

/* dy: the gradient of the last layer's output. Sets dx and dw, unless they are NULL. */
static void NAME(network_backward)(const struct NAME(network) * net, const REAL *dy, REAL *dx,
                                   REAL *dw)
{
    const struct lstm *s = &net->s;
    const int64_t rows = s->directions * net->samples;
    const int64_t blocks = (s->output + NAME(OUTPUT_BLOCK) - 1) / NAME(OUTPUT_BLOCK);
    for (int64_t layer = s->layers - 1; layer >= 0; --layer) {
        struct NAME(layer) at = NAME(layer_of)(net, layer, dw);
        at.dy = layer == s->layers - 1 ? dy : net->between;
        at.dx = layer == 0 ? dx : net->between; /* dy has been read by then */
        for (at.step = s->sequence - 1; at.step >= 0; --at.step) {
            net->loop(net->argument, "lstm_step_backward_outputs", rows * blocks, NAME(output_task),
                      &at);
            net->loop(net->argument, "lstm_step_backward", rows * s->hidden, NAME(backward_task),
                      &at);
        }
        if (dw)
            net->loop(net->argument, "lstm_weight_gradient",
                      s->directions * s->cell->sums * s->hidden, NAME(weights_task), &at);
        if (dw && s->projection)
            net->loop(net->argument, "lstm_projection_gradient", s->directions * s->projection,
                      NAME(projection_weights_task), &at);
        if (at.dx)
            net->loop(net->argument, "lstm_input_gradient", net->rows, NAME(input_task), &at);
    }
}
