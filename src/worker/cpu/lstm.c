/* Recurrent layers on the CPU: by oneDNN, and in products of single-threaded CBLAS made by the
 * threads of OpenMP regions. By CBLAS:
 *
 * forward, for each layer: one region multiplies the input of all time steps by the input matrices.
 * Then one region for each step adds the recurrent product and applies the gates.
 *
 * backward: one region for each step, from the last to the first. Then one region makes the
 * products over all steps, for the weights and for the input. A projection takes another region for
 * each step, either way.
 *
 * In every step a thread has the same units, so its part of the recurrent matrix stays in its
 * cache. The two directions run side by side. All gates and states are kept, as training needs
 * them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/workloads/lstm.h"
#include "worker/cpu/blas.h"
#include "worker/cpu/onednn.h"
#include "worker/cpu/routine.h"

#ifdef REAL
#include "worker/cpu/functions_real.h"

/* ---- the cells, some units of one sample at a time ----
 * struct lstm_cell (model/workloads/lstm.h) has the formulas. Sums, gates and gradients of a unit's
 * sums lie `hidden` apart. */

/* Forward: gates holds the matrix products and takes what the gates make of them. */
struct NAME(units) {
    int64_t count, hidden;
    const REAL *bias;
    REAL *gates;
    const REAL *before; /* states of the step before */
    REAL *state;        /* an LSTM's */
    REAL *h;
};

static void NAME(activate_lstm)(const struct NAME(units) * units)
{
    int64_t hidden = units->hidden;
    const REAL *restrict bias = units->bias, *c_before = units->before;
    REAL *restrict gates = units->gates, *c = units->state, *restrict h = units->h;
#pragma omp simd
    for (int64_t u = 0; u < units->count; ++u) {
        REAL i = NAME(sigmoid)(gates[u] + bias[u]);
        REAL f = NAME(sigmoid)(gates[hidden + u] + bias[hidden + u]);
        REAL g = NAME(hyperbolic_tangent)(gates[2 * hidden + u] + bias[2 * hidden + u]);
        REAL o = NAME(sigmoid)(gates[3 * hidden + u] + bias[3 * hidden + u]);
        REAL now = f * c_before[u] + i * g;
        c[u] = now;
        h[u] = o * NAME(hyperbolic_tangent)(now);
        gates[u] = i;
        gates[hidden + u] = f;
        gates[2 * hidden + u] = g;
        gates[3 * hidden + u] = o;
    }
}

static void NAME(activate_gru)(const struct NAME(units) * units)
{
    int64_t hidden = units->hidden;
    const REAL *restrict bias = units->bias, *restrict before = units->before;
    REAL *restrict gates = units->gates, *restrict h = units->h;
#pragma omp simd
    for (int64_t u = 0; u < units->count; ++u) {
        REAL z = NAME(sigmoid)(gates[u] + bias[u]);
        REAL r = NAME(sigmoid)(gates[hidden + u] + bias[hidden + u]);
        REAL q = gates[3 * hidden + u] + bias[3 * hidden + u];
        REAL n = NAME(hyperbolic_tangent)(gates[2 * hidden + u] + bias[2 * hidden + u] + r * q);
        h[u] = (1 - z) * n + z * before[u];
        gates[u] = z;
        gates[hidden + u] = r;
        gates[2 * hidden + u] = n;
        gates[3 * hidden + u] = q;
    }
}

static void NAME(activate_plain)(bool relu, const struct NAME(units) * units)
{
    const REAL *restrict bias = units->bias;
    REAL *restrict gates = units->gates, *restrict h = units->h;
#pragma omp simd
    for (int64_t u = 0; u < units->count; ++u) {
        REAL sum = gates[u] + bias[u];
        gates[u] = h[u] = !relu ? NAME(hyperbolic_tangent)(sum) : sum > 0 ? sum : 0;
    }
}

/* The way back. */
struct NAME(gradients) {
    int64_t count, hidden;
    const REAL *gates, *before, *state; /* as they were kept */
    const REAL *d;                      /* of the outputs */
    REAL *carried; /* of the states, from the later step; replaced by what the one before gets */
    REAL *dgates;
};

static void NAME(differentiate_lstm)(const struct NAME(gradients) * g)
{
    int64_t hidden = g->hidden;
    const REAL *gates = g->gates, *c_before = g->before, *c = g->state, *dh = g->d;
    REAL *dc = g->carried, *dgates = g->dgates;
#pragma omp simd
    for (int64_t u = 0; u < g->count; ++u) {
        REAL i = gates[u], f = gates[hidden + u], n = gates[2 * hidden + u];
        REAL o = gates[3 * hidden + u];
        REAL t = NAME(hyperbolic_tangent)(c[u]), d = dh[u];
        REAL dc_now = dc[u] + d * o * (1 - t * t);
        dc[u] = dc_now * f;
        dgates[u] = dc_now * n * i * (1 - i);
        dgates[hidden + u] = dc_now * c_before[u] * f * (1 - f);
        dgates[2 * hidden + u] = dc_now * i * (1 - n * n);
        dgates[3 * hidden + u] = d * t * o * (1 - o);
    }
}

static void NAME(differentiate_gru)(const struct NAME(gradients) * g)
{
    int64_t hidden = g->hidden;
    const REAL *gates = g->gates, *before = g->before, *dh = g->d;
    REAL *carried = g->carried, *dgates = g->dgates;
#pragma omp simd
    for (int64_t u = 0; u < g->count; ++u) {
        REAL z = gates[u], r = gates[hidden + u], n = gates[2 * hidden + u];
        REAL q = gates[3 * hidden + u], d = dh[u] + carried[u];
        REAL dn = d * (1 - z) * (1 - n * n);
        carried[u] = d * z;
        dgates[u] = d * (before[u] - n) * z * (1 - z);
        dgates[hidden + u] = dn * q * r * (1 - r);
        dgates[2 * hidden + u] = dn;
        dgates[3 * hidden + u] = dn * r;
    }
}

static void NAME(differentiate_plain)(bool relu, const struct NAME(gradients) * g)
{
    const REAL *h = g->gates, *d = g->d;
    REAL *dgates = g->dgates;
#pragma omp simd
    for (int64_t u = 0; u < g->count; ++u)
        dgates[u] = !relu ? d[u] * (1 - h[u] * h[u]) : h[u] > 0 ? d[u] : 0;
}

/* ---- the arrays of a layer ---- */

/* Step t of a direction; t may be -1 or T in those with a margin. */
static REAL *NAME(at)(const struct work *work, const struct array *array, struct step step,
                      int64_t t)
{
    return (REAL *)work->scratch + array->offset + step.layer * array->layer +
           step.direction * array->direction + t * array->step;
}

/* The same as a factor, from that step on. */
static struct factor NAME(rows)(const struct work *work, const struct array *array,
                                struct step step, int64_t t)
{
    return (struct factor){NAME(at)(work, array, step, t), array->sample, false};
}

/* Weights of a direction, from a row of the matrix on. */
static struct factor NAME(weights)(const struct work *work, struct step step, enum lstm_part part,
                                   int64_t row)
{
    const struct lstm *s = work->shape;
    const int64_t columns = part_columns(s, step.layer, part);
    const REAL *weights = work->input[TENSOR_WEIGHT];
    weights += lstm_w_at(s, step.layer, step.direction, part) + row * columns;
    return (struct factor){weights, columns, false};
}

/* Of all time steps: [T][N][width]. */
static struct factor NAME(layer_input)(const struct work *work, int64_t layer)
{
    const struct lstm *s = work->shape;
    const struct lstm_plan *plan = work->plan;
    if (layer > 0)
        return NAME(rows)(work, &plan->hidden, (struct step){.layer = layer - 1}, 0);
    return (struct factor){work->input[TENSOR_INPUT], s->features, false};
}

/* ---- forward ---- */

/* Adds the product of the outputs before, of some units, or sets it. */
static void NAME(recur)(const struct work *work, struct step step, const struct block *block)
{
    const struct lstm *s = work->shape;
    const struct lstm_plan *plan = work->plan;
    const int64_t hidden = s->hidden;
    struct product product = {
        .wide = REAL_WIDE,
        .adds = block->adds,
        .m = s->batch,
        .n = block->count * hidden,
        .k = s->output,
        .a = NAME(rows)(work, &plan->hidden, step, step.before),
        .b = NAME(weights)(work, step, LSTM_RECURRENT_MATRIX, block->gate * hidden),
        .c = NAME(at)(work, &plan->gates, step, step.t) + block->sum * hidden,
        .c_leading = plan->gates.sample,
    };
    product.b.transposed = true;
    if (step.units == hidden) /* all gates at once */
        blas_multiply(&product, 0, s->batch, 0, product.n);
    for (int64_t gate = 0; step.units < hidden && gate < block->count; ++gate)
        blas_multiply(&product, 0, s->batch, gate * hidden + step.unit, step.units);
}

static void NAME(step_forward)(const struct work *work, struct step step)
{
    const struct lstm *s = work->shape;
    const struct lstm_plan *plan = work->plan;
    const struct blocks *blocks = &recurrent_blocks[s->kind];
    const struct array *states = states_of(work);
    const struct array *outputs = s->projection ? &plan->wide : &plan->hidden;
    for (int i = 0; i < blocks->count; ++i)
        NAME(recur)(work, step, &blocks->blocks[i]);
    for (int64_t n = 0; n < s->batch; ++n) {
        const struct NAME(units) units = {
            .count = step.units,
            .hidden = s->hidden,
            .bias = (const REAL *)NAME(weights)(work, step, LSTM_BIAS, 0).data + step.unit,
            .gates =
                NAME(at)(work, &plan->gates, step, step.t) + n * plan->gates.sample + step.unit,
            .before = NAME(at)(work, states, step, step.before) + n * states->sample + step.unit,
            .state = NAME(at)(work, states, step, step.t) + n * states->sample + step.unit,
            .h = NAME(at)(work, outputs, step, step.t) + n * outputs->sample + step.unit,
        };
        if (s->kind == LSTM_LSTM)
            NAME(activate_lstm)(&units);
        else if (s->kind == LSTM_GRU)
            NAME(activate_gru)(&units);
        else
            NAME(activate_plain)(s->kind == LSTM_RELU, &units);
    }
}

static void NAME(step_project)(const struct work *work, struct step step)
{
    const struct lstm *s = work->shape;
    const struct lstm_plan *plan = work->plan;
    struct product product = {
        .wide = REAL_WIDE,
        .m = s->batch,
        .n = s->projection,
        .k = s->hidden,
        .a = NAME(rows)(work, &plan->wide, step, step.t),
        .b = NAME(weights)(work, step, LSTM_PROJECTION, 0),
        .c = NAME(at)(work, &plan->hidden, step, step.t),
        .c_leading = plan->hidden.sample,
    };
    product.b.transposed = true;
    blas_multiply(&product, 0, s->batch, step.output, step.outputs);
}

typedef void NAME(step_function)(const struct work *, struct step);

/* A region: all tasks of one time step. */
static void NAME(step_run)(const struct work *work, int64_t layer, int64_t order,
                           NAME(step_function) * function, const char *name, struct trace *trace)
{
    const struct lstm *s = work->shape;
    int64_t parts = ((const struct lstm_plan *)work->plan)->parts;
    double begin = trace_begin(trace);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->directions * parts; ++i)
        function(work, step_find(s, parts, layer, order, i));
    trace_end(trace, name, begin);
}

static void NAME(lstm_forward)(const struct work *work, struct trace *trace)
{
    const struct lstm *s = work->shape;
    const struct lstm_plan *plan = work->plan;
    for (int64_t layer = 0; layer < s->layers; ++layer) {
        double begin = trace_begin(trace);
#pragma omp parallel
        for (int64_t direction = 0; direction < s->directions; ++direction) {
            const struct step all = {.layer = layer, .direction = direction};
            struct product product = {
                .wide = REAL_WIDE,
                .m = s->sequence * s->batch,
                .n = s->cell->gates * s->hidden,
                .k = lstm_input_width(s, layer),
                .a = NAME(layer_input)(work, layer),
                .b = NAME(weights)(work, all, LSTM_INPUT_MATRIX, 0),
                .c = NAME(at)(work, &plan->gates, all, 0),
                .c_leading = plan->gates.sample,
            };
            product.b.transposed = true;
            blas_multiply_shared(&product);
        }
        trace_end(trace, "lstm_input_product", begin);
        for (int64_t t = 0; t < s->sequence; ++t) {
            NAME(step_run)(work, layer, t, NAME(step_forward), "lstm_step_forward", trace);
            if (s->projection)
                NAME(step_run)(work, layer, t, NAME(step_project), "lstm_step_projection", trace);
        }
    }
}

/* ---- backward ---- */

/* The outputs' gradient, of some of them: from above, and from the later step's sums. */
static void NAME(outputs_backward)(const struct work *work, struct step step)
{
    const struct lstm *s = work->shape;
    const struct lstm_plan *plan = work->plan;
    const struct blocks *blocks = &recurrent_blocks[s->kind];
    const int64_t row = s->output * s->directions;
    const struct step above = {.layer = (step.layer + 1) % 2};
    const REAL *dy = step.layer == s->layers - 1 ? work->input[TENSOR_OUTPUT]
                                                 : NAME(at)(work, &plan->dinput, above, 0);
    REAL *doutput = NAME(at)(work, &plan->doutput, step, step.t);
    dy += step.t * s->batch * row + step.direction * s->output + step.output;
    for (int64_t n = 0; n < s->batch; ++n)
        memcpy(doutput + n * s->output + step.output, dy + n * row,
               (size_t)step.outputs * sizeof *dy);
    for (int i = 0; i < blocks->count; ++i) {
        const struct block *block = &blocks->blocks[i];
        const REAL *later = NAME(at)(work, &plan->dgates, step, step.after);
        const struct product product = {
            .wide = REAL_WIDE,
            .adds = true,
            .m = s->batch,
            .n = s->output,
            .k = block->count * s->hidden,
            .a = {later + block->sum * s->hidden, plan->dgates.sample, false},
            .b = NAME(weights)(work, step, LSTM_RECURRENT_MATRIX, block->gate * s->hidden),
            .c = doutput,
            .c_leading = s->output,
        };
        blas_multiply(&product, 0, s->batch, step.output, step.outputs);
    }
}

static void NAME(units_backward)(const struct work *work, struct step step)
{
    const struct lstm *s = work->shape;
    const struct lstm_plan *plan = work->plan;
    const struct array *states = states_of(work);
    const REAL *d = s->projection ? NAME(at)(work, &plan->dwide, step, 0)
                                  : NAME(at)(work, &plan->doutput, step, step.t);
    for (int64_t n = 0; n < s->batch; ++n) {
        const int64_t sums = n * plan->gates.sample + step.unit;
        const int64_t own = n * s->hidden + step.unit;
        const struct NAME(gradients) gradients = {
            .count = step.units,
            .hidden = s->hidden,
            .gates = NAME(at)(work, &plan->gates, step, step.t) + sums,
            .before = NAME(at)(work, states, step, step.before) + n * states->sample + step.unit,
            .state = NAME(at)(work, states, step, step.t) + n * states->sample + step.unit,
            .d = d + own,
            .carried = NAME(at)(work, &plan->carried, step, 0) + own,
            .dgates = NAME(at)(work, &plan->dgates, step, step.t) + sums,
        };
        if (s->kind == LSTM_LSTM)
            NAME(differentiate_lstm)(&gradients);
        else if (s->kind == LSTM_GRU)
            NAME(differentiate_gru)(&gradients);
        else
            NAME(differentiate_plain)(s->kind == LSTM_RELU, &gradients);
    }
}

/* Without a projection a task's outputs are its units, so nothing stands between the two. */
static void NAME(step_backward)(const struct work *work, struct step step)
{
    NAME(outputs_backward)(work, step);
    if (!((const struct lstm *)work->shape)->projection)
        NAME(units_backward)(work, step);
}

/* The units' gradient by way of the projection. */
static void NAME(step_backward_wide)(const struct work *work, struct step step)
{
    const struct lstm *s = work->shape;
    const struct lstm_plan *plan = work->plan;
    const struct product product = {
        .wide = REAL_WIDE,
        .m = s->batch,
        .n = s->hidden,
        .k = s->projection,
        .a = NAME(rows)(work, &plan->doutput, step, step.t),
        .b = NAME(weights)(work, step, LSTM_PROJECTION, 0),
        .c = NAME(at)(work, &plan->dwide, step, 0),
        .c_leading = s->hidden,
    };
    blas_multiply(&product, 0, s->batch, step.unit, step.units);
    NAME(units_backward)(work, step);
}

/* Within a region: some rows of the gradient of a matrix, a^T b over all samples of all steps. */
static void NAME(weights_backward)(const struct work *work, struct step all, enum lstm_part part,
                                   int64_t row, int64_t rows, struct factor a, struct factor b)
{
    const struct lstm *s = work->shape;
    const int64_t columns = part_columns(s, all.layer, part);
    const struct product product = {
        .wide = REAL_WIDE,
        .m = rows,
        .n = columns,
        .k = s->sequence * s->batch,
        .a = {a.data, a.leading, true},
        .b = b,
        .c = (REAL *)work->result[TENSOR_WEIGHT] + lstm_w_at(s, all.layer, all.direction, part) +
             row * columns,
        .c_leading = columns,
    };
    blas_multiply_shared(&product);
}

/* Within a region: the gradients of one direction's weights, and what it contributes to the
 * input's. */
static void NAME(direction_backward)(const struct work *work, struct step all)
{
    const struct lstm *s = work->shape;
    const struct lstm_plan *plan = work->plan;
    const struct blocks *blocks = &recurrent_blocks[s->kind];
    const struct factor dgates = NAME(rows)(work, &plan->dgates, all, 0);
    const REAL *sums = dgates.data;
    REAL *dbias = work->result[TENSOR_WEIGHT];
    NAME(weights_backward)
    (work, all, LSTM_INPUT_MATRIX, 0, s->cell->gates * s->hidden, dgates,
     NAME(layer_input)(work, all.layer));
    for (int i = 0; i < blocks->count; ++i) {
        const struct block *block = &blocks->blocks[i];
        const struct factor own = {sums + block->sum * s->hidden, dgates.leading, false};
        NAME(weights_backward)
        (work, all, LSTM_RECURRENT_MATRIX, block->gate * s->hidden, block->count * s->hidden, own,
         NAME(rows)(work, &plan->hidden, all, all.direction ? 1 : -1)); /* the step before */
    }
    if (s->projection)
        NAME(weights_backward)
    (work, all, LSTM_PROJECTION, 0, s->projection, NAME(rows)(work, &plan->doutput, all, 0),
     NAME(rows)(work, &plan->wide, all, 0));
    dbias += lstm_w_at(s, all.layer, all.direction, LSTM_BIAS);
    for (int64_t at = 0; at < s->sequence * s->batch; ++at)
#pragma omp for simd schedule(static) nowait
        for (int64_t j = 0; j < dgates.leading; ++j)
            dbias[j] = (at > 0 ? dbias[j] : 0) + sums[at * dgates.leading + j];
    const int64_t width = lstm_input_width(s, all.layer);
    const struct step own = {.layer = all.layer % 2};
    const struct product product = {
        .wide = REAL_WIDE,
        .adds = all.direction > 0,
        .m = s->sequence * s->batch,
        .n = width,
        .k = s->cell->gates * s->hidden,
        .a = dgates,
        .b = NAME(weights)(work, all, LSTM_INPUT_MATRIX, 0),
        .c = all.layer == 0 ? work->result[TENSOR_INPUT] : NAME(at)(work, &plan->dinput, own, 0),
        .c_leading = width,
    };
    blas_multiply_shared(&product);
}

static void NAME(lstm_backward)(const struct work *work, struct trace *trace)
{
    const struct lstm *s = work->shape;
    const struct lstm_plan *plan = work->plan;
    const struct step first = {.layer = 0};
    for (int64_t layer = s->layers - 1; layer >= 0; --layer) {
        memset(NAME(at)(work, &plan->carried, first, 0), 0,
               (size_t)(s->directions * s->batch * s->hidden) * sizeof(REAL));
        for (int64_t t = s->sequence - 1; t >= 0; --t) {
            NAME(step_run)(work, layer, t, NAME(step_backward), "lstm_step_backward", trace);
            if (s->projection)
                NAME(step_run)
            (work, layer, t, NAME(step_backward_wide), "lstm_step_backward_projection", trace);
        }
        double begin = trace_begin(trace);
#pragma omp parallel
        for (int64_t direction = 0; direction < s->directions; ++direction)
            NAME(direction_backward)
        (work, (struct step){.layer = layer, .direction = direction});
        trace_end(trace, "lstm_gradient_products", begin);
    }
}

#else

/* An array of CBLAS in the scratch memory: where its first step begins, and from one layer,
 * direction, step and sample to the next; elements. Of those with a margin a zero step stands for
 * the state before the first one, on either end. Of other arrays than a layer keeps, `layer` is
 * 0. */
struct array {
    size_t offset;
    int64_t layer, direction, step, sample;
};

/* With S sums, H units and R outputs of a direction, and D directions, a sample has: */
struct lstm_plan {
    int64_t parts;       /* of one direction's time step */
    struct array hidden; /* D R outputs, with a margin */
    struct array cell;   /* H, with a margin */
    struct array gates;  /* S H */
    struct array wide;   /* H, before a projection */
    /* Gradients, of one layer: of the sums, S H, with a margin; of a direction's outputs, R, and
     * before the projection, H; of the states, H; of the input of every second layer, D R. The last
     * three have no steps, no steps and no directions. */
    struct array dgates, doutput, dwide, carried, dinput;
};

/* Sums that one recurrent product makes: the input's product is there already, or is not in
 * them. */
struct block {
    int sum, gate, count;
    bool adds;
};
static const struct blocks {
    int count;
    struct block blocks[2];
} recurrent_blocks[LSTM_KINDS] = {
    [LSTM_LSTM] = {1, {{0, 0, 4, true}}},
    [LSTM_GRU] = {2, {{0, 0, 2, true}, {3, 2, 1, false}}},
    [LSTM_RELU] = {1, {{0, 0, 1, true}}},
    [LSTM_TANH] = {1, {{0, 0, 1, true}}},
};

/* What one task of a time step does: some units and outputs of one direction of a layer, from the
 * first one on. Without a projection these are the same. */
struct step {
    int64_t layer, direction;
    int64_t t, before, after; /* the step, and its neighbours in the direction's own order */
    int64_t unit, units, output, outputs;
};

/* `order` counts the steps in the direction's own order. */
static struct step step_find(const struct lstm *s, int64_t parts, int64_t layer, int64_t order,
                             int64_t index)
{
    int64_t part = index % parts, direction = index / parts, ahead = direction ? -1 : 1;
    int64_t t = direction ? s->sequence - 1 - order : order;
    int64_t unit = share_begin(s->hidden, part, parts);
    int64_t output = share_begin(s->output, part, parts);
    return (struct step){
        .layer = layer,
        .direction = direction,
        .t = t,
        .before = t - ahead,
        .after = t + ahead,
        .unit = unit,
        .units = share_begin(s->hidden, part + 1, parts) - unit,
        .output = output,
        .outputs = share_begin(s->output, part + 1, parts) - output,
    };
}

/* Of an LSTM its cells, else its outputs. */
static const struct array *states_of(const struct work *work)
{
    const struct lstm_plan *plan = work->plan;
    return ((const struct lstm *)work->shape)->kind == LSTM_LSTM ? &plan->cell : &plan->hidden;
}

static int64_t part_columns(const struct lstm *s, int64_t layer, enum lstm_part part)
{
    return part == LSTM_INPUT_MATRIX       ? lstm_input_width(s, layer)
           : part == LSTM_RECURRENT_MATRIX ? s->output
                                           : s->hidden;
}

#define REAL_TEMPLATE "worker/cpu/lstm.c"
#include "worker/cpu/real.h"

static void lstm_describe(struct work *work)
{
    struct lstm *s = work->shape;
    *s = lstm_from(&work->config);
    bool backward = s->pass == LSTM_BACKWARD;
    work->size[TENSOR_INPUT] = lstm_x_size(s);
    work->size[TENSOR_WEIGHT] = lstm_w_size(s);
    work->size[TENSOR_OUTPUT] = lstm_y_size(s);
    work->reads[TENSOR_INPUT] = work->reads[TENSOR_WEIGHT] = true;
    work->writes[TENSOR_INPUT] = work->writes[TENSOR_WEIGHT] = backward;
    work->reads[TENSOR_OUTPUT] = backward;
    work->writes[TENSOR_OUTPUT] = true;
}

/* Of each time step. */
static void lstm_gradient_shape(const struct work *work, int64_t *sample, int64_t *batch)
{
    const struct lstm *s = work->shape;
    *sample = s->output * s->directions;
    *batch = s->batch;
}

/* margin: of 0 or 1 steps on either end. */
static struct array array_take(struct work *work, int64_t layers, int64_t directions, int64_t steps,
                               int64_t margin, int64_t sample)
{
    const int64_t step = ((const struct lstm *)work->shape)->batch * sample;
    const int64_t direction = (steps + 2 * margin) * step, layer = directions * direction;
    const size_t bytes = scratch_take(work, (size_t)(layers * layer) * work->element);
    return (struct array){bytes / work->element + (size_t)(margin * step), layer, direction, step,
                          sample};
}

static enum status cblas_plan(struct work *work, struct error *error)
{
    const int64_t worthwhile = 16; /* units of a part */
    struct lstm_plan *plan = work->plan;
    const struct lstm *s = work->shape;
    const int64_t extents[] = {s->cell->sums * s->hidden, s->features, s->sequence * s->batch};
    const int64_t layers = s->layers, directions = s->directions, steps = s->sequence;
    const int64_t sums = s->cell->sums * s->hidden, outputs = directions * s->output;
    const int64_t threads = (work->topology->cores + directions - 1) / directions;
    plan->parts = s->hidden / worthwhile < threads ? s->hidden / worthwhile : threads;
    plan->parts = plan->parts < 1 ? 1 : plan->parts;
    work->bound[TENSOR_OUTPUT] = true;
    plan->hidden = array_take(work, layers, 1, steps, 1, outputs);
    plan->hidden.direction = s->output;
    plan->cell =
        array_take(work, s->kind == LSTM_LSTM ? layers : 0, directions, steps, 1, s->hidden);
    plan->gates = array_take(work, layers, directions, steps, 0, sums);
    plan->wide = array_take(work, s->projection ? layers : 0, directions, steps, 0, s->hidden);
    if (s->pass == LSTM_BACKWARD) {
        plan->dgates = array_take(work, 1, directions, steps, 1, sums);
        plan->doutput = array_take(work, 1, directions, steps, 0, s->output);
        plan->dwide = array_take(work, s->projection ? 1 : 0, directions, 1, 0, s->hidden);
        plan->carried = array_take(work, 1, directions, 1, 0, s->hidden);
        plan->dgates.layer = plan->doutput.layer = plan->dwide.layer = plan->carried.layer = 0;
        plan->dinput = array_take(work, layers > 1 ? 2 : 0, 1, steps, 0, outputs);
    }
    return blas_check(extents, sizeof extents / sizeof *extents, error);
}

static enum status cblas_ready(struct work *work, struct error *error)
{
    const struct lstm_plan *plan = work->plan;
    const struct lstm *s = work->shape;
    size_t offset = plan->hidden.offset + (size_t)((s->layers - 1) * plan->hidden.layer);
    (void)error;
    work->result[TENSOR_OUTPUT] = (char *)work->scratch + offset * work->element;
    return STATUS_OK;
}

static void cblas_forward(struct work *work, struct trace *trace)
{
    (work->precision == PRECISION_FP64 ? lstm_forward_fp64 : lstm_forward_fp32)(work, trace);
}

static void cblas_before(struct work *work)
{
    if (((const struct lstm *)work->shape)->pass == LSTM_BACKWARD)
        cblas_forward(work, NULL);
}

static void cblas_run(struct work *work, struct trace *trace)
{
    if (((const struct lstm *)work->shape)->pass == LSTM_FORWARD)
        cblas_forward(work, trace);
    else
        (work->precision == PRECISION_FP64 ? lstm_backward_fp64 : lstm_backward_fp32)(work, trace);
}

#ifdef ROOFSWEEP_ONEDNN
/* One operation for each layer, which does all time steps and both directions. The weights are
 * packed before, as frameworks do that keep a model; gradients come back in the user's layout,
 * within the time. Offsets are in the scratch memory, in bytes. */
struct layer {
    struct onednn *forward, *backward; /* backward NULL but in that pass */
    size_t forward_memory, backward_memory;
    size_t output; /* of all layers but the last */
    size_t dinput; /* of all layers but the first */
};

struct onednn_layers {
    size_t zeros;         /* of all layers: states before the first step */
    size_t dstates[2];    /* their gradients, which nobody asks for */
    struct layer *layers; /* owned */
};

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
    return (struct onednn_tensor){place,
                                  s->precision,
                                  5,
                                  {1, s->directions, width, s->cell->gates, s->hidden},
                                  {s->directions * stride, stride, 1, s->hidden * width, width}};
}

/* [1][direction][a][b] of a direction's weights in memory, where the elements along each axis lie
 * so far apart. */
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

/* Initial states are zero, but the library has to see them: without, 2.6.3 takes the last ones for
 * them in the gradient of the recurrent weights. */
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
    if (s->projection && s->precision != PRECISION_FP32) /* 2.6.3: off by its own size */
        return error_set(error, STATUS_UNSUPPORTED,
                         "oneDNN's LSTM with a projection is wrong in %s: it is used in fp32",
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
    .workload = &lstm_workload,
    .shape_size = sizeof(struct lstm),
    .describe = lstm_describe,
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
            {.implementation = "cblas",
             .algorithm = "gemm",
             .plan_size = sizeof(struct lstm_plan),
             .plan = cblas_plan,
             .ready = cblas_ready,
             .before = cblas_before,
             .run = cblas_run},
        },
};
#endif
