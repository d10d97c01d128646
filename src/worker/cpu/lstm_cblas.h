/* An LSTM in one precision: a template, see real.h. Written for lstm.c, which explains it. */
#include "worker/cpu/functions_real.h"

/* c[m][n] = a * b + beta * c; a transposed is stored [k][m], b transposed [n][k]. */
struct NAME(product) {
    int a_order, b_order; /* the name of their enum differs between libraries */
    int64_t m, n, k;
    const REAL *a, *b;
    REAL *c;
    int64_t a_leading, b_leading, c_leading;
    REAL beta;
};

static void NAME(multiply_part)(const struct NAME(product) * p, int64_t m_begin, int64_t m_end,
                                int64_t n_begin, int64_t n_end)
{
    if (m_begin == m_end || n_begin == n_end)
        return;
    REAL_GEMM(CblasRowMajor, p->a_order, p->b_order, (int)(m_end - m_begin), (int)(n_end - n_begin),
              (int)p->k, 1, p->a + m_begin * (p->a_order == CblasNoTrans ? p->a_leading : 1),
              (int)p->a_leading, p->b + n_begin * (p->b_order == CblasNoTrans ? 1 : p->b_leading),
              (int)p->b_leading, p->beta, p->c + m_begin * p->c_leading + n_begin,
              (int)p->c_leading);
}

/* Called by the whole team in a region. Each thread takes one part, the same one whenever the shape is
 * the same. So two products into the same c need no barrier between them. There is no barrier at the
 * end. */
static void NAME(multiply)(const struct NAME(product) * p, int threads)
{
    int64_t m_parts = product_rows(p->m, p->n, threads), n_parts = threads / m_parts;
#pragma omp for collapse(2) schedule(static) nowait
    for (int64_t i = 0; i < m_parts; ++i)
        for (int64_t j = 0; j < n_parts; ++j) {
            int64_t m = share_begin(p->m, i, m_parts), m_end = share_begin(p->m, i + 1, m_parts);
            int64_t n = share_begin(p->n, j, n_parts), n_end = share_begin(p->n, j + 1, n_parts);
            NAME(multiply_part)(p, m, m_end, n, n_end);
        }
}

/* `count` units of one sample: gates holds the matrix products and takes the gates, unit after
 * unit, the next gate `hidden` further on. */
static void NAME(activate)(int64_t count, int64_t hidden, const REAL *restrict bias,
                           REAL *restrict gates, const REAL *c_before, REAL *c, REAL *restrict h)
{
#pragma omp simd
    for (int64_t u = 0; u < count; ++u) {
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

/* The way back, of some units of one sample. */
struct NAME(cells) {
    const REAL *gates, *c_before, *c; /* as they were kept */
    const REAL *dy, *dh;              /* from above, and from the later step */
    REAL *dc; /* from the later step, replaced by what the one before gets */
    REAL *dgates;
};

static void NAME(differentiate)(const struct NAME(cells) * cells, int64_t count, int64_t hidden)
{
    const REAL *gates = cells->gates, *c_before = cells->c_before, *c = cells->c;
    const REAL *dy = cells->dy, *dh = cells->dh;
    REAL *dc = cells->dc, *dgates = cells->dgates;
#pragma omp simd
    for (int64_t u = 0; u < count; ++u) {
        REAL i = gates[u], f = gates[hidden + u], g = gates[2 * hidden + u];
        REAL o = gates[3 * hidden + u];
        REAL t = NAME(hyperbolic_tangent)(c[u]), d = dh[u] + dy[u];
        REAL dc_now = dc[u] + d * o * (1 - t * t);
        dc[u] = dc_now * f;
        dgates[u] = dc_now * g * i * (1 - i);
        dgates[hidden + u] = dc_now * c_before[u] * f * (1 - f);
        dgates[2 * hidden + u] = dc_now * i * (1 - g * g);
        dgates[3 * hidden + u] = d * t * o * (1 - o);
    }
}

/* The arrays of one layer. A step t of those with a margin is row t + 1: a zero row stands for the
 * state before the first step, on either end. */
struct NAME(layer) {
    const REAL *input;  /* [T][N][width] */
    REAL *hidden;       /* [T + 2][N][D * H], with margin */
    REAL *cell, *gates; /* per direction: [T + 2][N][H], with margin; [T][N][4][H] */
    int64_t cell_step;  /* elements from one step's cells to the next; 0: they are overwritten */
    int64_t cell_direction;   /* from one direction's to the other's */
    int64_t width;            /* of the input */
    const REAL *matrix[2][3]; /* by direction and enum lstm_part */
};

static struct NAME(layer) NAME(layer_find)(const struct work *work, int64_t index)
{
    const struct lstm_plan *plan = work->plan;
    const struct lstm *s = &plan->shape;
    REAL *scratch = work->scratch;
    int64_t row = s->batch * s->hidden * s->directions, rows = s->sequence + 2;
    int64_t kept = plan->keep ? index : 0;
    struct NAME(layer) layer = {
        .hidden = scratch + plan->hidden + index * rows * row,
        .cell_step = plan->keep ? s->batch * s->hidden : 0,
        .cell_direction = plan->keep ? rows * s->batch * s->hidden : s->batch * s->hidden,
        .gates = scratch + plan->gates + kept * s->sequence * row * 4,
        .width = lstm_input_width(s, index),
    };
    layer.cell = scratch + plan->cell + kept * s->directions * layer.cell_direction;
    layer.input =
        index == 0 ? (const REAL *)work->input[TENSOR_INPUT] : layer.hidden - rows * row + row;
    for (int64_t direction = 0; direction < s->directions; ++direction)
        for (int part = 0; part < 3; ++part)
            layer.matrix[direction][part] = (const REAL *)work->input[TENSOR_WEIGHT] +
                                            lstm_w_at(s, index, direction, (enum lstm_part)part);
    return layer;
}

/* The cells of direction and step t; t may be -1 or T. */
static REAL *NAME(cell_at)(const struct NAME(layer) * layer, int64_t direction, int64_t t)
{
    return layer->cell + direction * layer->cell_direction + (t + 1) * layer->cell_step;
}

static void NAME(step_forward)(const struct lstm *s, const struct NAME(layer) * layer,
                               struct step step)
{
    int64_t hidden = s->hidden, row = hidden * s->directions;
    int64_t units = step.unit_end - step.unit_begin;
    REAL *gates = layer->gates + ((step.direction * s->sequence + step.t) * s->batch) * 4 * hidden;
    const REAL *recurrent = layer->matrix[step.direction][LSTM_RECURRENT_MATRIX];
    const REAL *bias = layer->matrix[step.direction][LSTM_BIAS];
    struct NAME(product) product = {
        .a_order = CblasNoTrans,
        .b_order = CblasTrans,
        .m = s->batch,
        .n = 4 * hidden,
        .k = hidden,
        .a = layer->hidden + (step.before + 1) * s->batch * row + step.direction * hidden,
        .a_leading = row,
        .b = recurrent,
        .b_leading = hidden,
        .c = gates,
        .c_leading = 4 * hidden,
        .beta = 1,
    };
    if (units == hidden) /* all gates at once */
        NAME(multiply_part)(&product, step.row_begin, step.row_end, 0, 4 * hidden);
    for (int64_t gate = 0; units < hidden && gate < 4; ++gate) {
        int64_t first = gate * hidden + step.unit_begin;
        NAME(multiply_part)(&product, step.row_begin, step.row_end, first, first + units);
    }
    const REAL *before = NAME(cell_at)(layer, step.direction, step.before) + step.unit_begin;
    REAL *cell = NAME(cell_at)(layer, step.direction, step.t) + step.unit_begin;
    REAL *h = layer->hidden + (step.t + 1) * s->batch * row + step.direction * hidden;
    bias += step.unit_begin;
    gates += step.unit_begin;
    h += step.unit_begin;
    for (int64_t n = step.row_begin; n < step.row_end; ++n) {
        int64_t at = n * hidden;
        NAME(activate)(units, hidden, bias, gates + 4 * at, before + at, cell + at, h + n * row);
    }
}

static void NAME(layer_forward)(const struct work *work, int64_t index, struct trace *trace)
{
    const struct lstm_plan *plan = work->plan;
    const struct lstm *s = &plan->shape;
    struct NAME(layer) layer = NAME(layer_find)(work, index);
    double begin = trace_begin(trace);
#pragma omp parallel
    for (int64_t direction = 0; direction < s->directions; ++direction) {
        struct NAME(product) product = {
            .a_order = CblasNoTrans,
            .b_order = CblasTrans,
            .m = s->sequence * s->batch,
            .n = 4 * s->hidden,
            .k = layer.width,
            .a = layer.input,
            .a_leading = layer.width,
            .b = layer.matrix[direction][LSTM_INPUT_MATRIX],
            .b_leading = layer.width,
            .c = layer.gates + direction * s->sequence * s->batch * 4 * s->hidden,
            .c_leading = 4 * s->hidden,
        };
        NAME(multiply)(&product, plan->threads);
    }
    trace_end(trace, "lstm_input_product", begin);
    if (!plan->keep)
        memset(layer.cell, 0, (size_t)(s->directions * layer.cell_direction) * sizeof *layer.cell);
    for (int64_t t = 0; t < s->sequence; ++t) {
        begin = trace_begin(trace);
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < step_count(plan); ++i)
            NAME(step_forward)(s, &layer, step_find(plan, t, i));
        trace_end(trace, "lstm_step_forward", begin);
    }
}

static void NAME(lstm_forward)(const struct work *work, struct trace *trace)
{
    for (int64_t layer = 0; layer < ((const struct lstm_plan *)work->plan)->shape.layers; ++layer)
        NAME(layer_forward)(work, layer, trace);
}

/* The gradients on their way down, of one layer. */
struct NAME(gradient) {
    const REAL *dy; /* [T][N][D * H] */
    REAL *dgates, *dhidden,
        *dcell;        /* per direction: [T + 2][N][4][H] with margin, [N][H], [N][H] */
    REAL *dinput, *dw; /* [T][N][width]; the whole of w's gradient */
};

static REAL *NAME(dgates_at)(const struct lstm *s, const struct NAME(gradient) * gradient,
                             int64_t direction, int64_t t)
{
    return gradient->dgates + (direction * (s->sequence + 2) + t + 1) * s->batch * 4 * s->hidden;
}

static void NAME(step_backward)(const struct lstm *s, const struct NAME(layer) * layer,
                                const struct NAME(gradient) * gradient, struct step step)
{
    int64_t hidden = s->hidden, row = hidden * s->directions,
            at = step.direction * s->batch * hidden;
    struct NAME(product) product = {
        .a_order = CblasNoTrans,
        .b_order = CblasNoTrans,
        .m = s->batch,
        .n = hidden,
        .k = 4 * hidden,
        .a = NAME(dgates_at)(s, gradient, step.direction, step.after),
        .a_leading = 4 * hidden,
        .b = layer->matrix[step.direction][LSTM_RECURRENT_MATRIX],
        .b_leading = hidden,
        .c = gradient->dhidden + at,
        .c_leading = hidden,
    };
    NAME(multiply_part)(&product, step.row_begin, step.row_end, step.unit_begin, step.unit_end);
    const REAL *gates =
        layer->gates + ((step.direction * s->sequence + step.t) * s->batch) * 4 * hidden;
    REAL *dgates = NAME(dgates_at)(s, gradient, step.direction, step.t);
    const REAL *before = NAME(cell_at)(layer, step.direction, step.before);
    const REAL *cell = NAME(cell_at)(layer, step.direction, step.t);
    const REAL *dy = gradient->dy + step.t * s->batch * row + step.direction * hidden;
    for (int64_t n = step.row_begin; n < step.row_end; ++n) {
        int64_t u = step.unit_begin, unit = n * hidden + u, gate = 4 * n * hidden + u;
        struct NAME(cells) cells = {
            .gates = gates + gate,
            .c_before = before + unit,
            .c = cell + unit,
            .dy = dy + n * row + u,
            .dh = gradient->dhidden + at + unit,
            .dc = gradient->dcell + at + unit,
            .dgates = dgates + gate,
        };
        NAME(differentiate)(&cells, step.unit_end - u, hidden);
    }
}

/* Within a region: the column sums of the gates' gradients. */
static void NAME(sum_bias)(const struct lstm *s, const REAL *dgates, REAL *dbias)
{
    int64_t columns = 4 * s->hidden, block = 16, blocks = (columns + block - 1) / block;
#pragma omp for schedule(static) nowait
    for (int64_t i = 0; i < blocks; ++i) {
        int64_t first = i * block, count = columns - first < block ? columns - first : block;
        REAL sums[16] = {0};
        for (int64_t at = 0; at < s->sequence * s->batch; ++at)
            for (int64_t j = 0; j < count; ++j)
                sums[j] += dgates[at * columns + first + j];
        for (int64_t j = 0; j < count; ++j)
            dbias[first + j] = sums[j];
    }
}

/* Within a region: what one direction contributes to dw and to the input's gradient. */
static void NAME(direction_backward)(const struct lstm_plan *plan, const struct NAME(layer) * layer,
                                     const struct NAME(gradient) * gradient, int64_t index,
                                     int64_t direction)
{
    const struct lstm *s = &plan->shape;
    int64_t hidden = s->hidden, row = hidden * s->directions;
    const REAL *dgates = NAME(dgates_at)(s, gradient, direction, 0);
    struct NAME(product) weights = {
        .a_order = CblasTrans,
        .b_order = CblasNoTrans,
        .m = 4 * hidden,
        .n = layer->width,
        .k = s->sequence * s->batch,
        .a = dgates,
        .a_leading = 4 * hidden,
        .b = layer->input,
        .b_leading = layer->width,
        .c = gradient->dw + lstm_w_at(s, index, direction, LSTM_INPUT_MATRIX),
        .c_leading = layer->width,
    };
    NAME(multiply)(&weights, plan->threads);
    weights.n = hidden;
    weights.b = layer->hidden + direction * (2 * s->batch * row + hidden); /* of the step before */
    weights.b_leading = row;
    weights.c = gradient->dw + lstm_w_at(s, index, direction, LSTM_RECURRENT_MATRIX);
    weights.c_leading = hidden;
    NAME(multiply)(&weights, plan->threads);
    NAME(sum_bias)(s, dgates, gradient->dw + lstm_w_at(s, index, direction, LSTM_BIAS));
    struct NAME(product) data = {
        .a_order = CblasNoTrans,
        .b_order = CblasNoTrans,
        .m = s->sequence * s->batch,
        .n = layer->width,
        .k = 4 * hidden,
        .a = dgates,
        .a_leading = 4 * hidden,
        .b = layer->matrix[direction][LSTM_INPUT_MATRIX],
        .b_leading = layer->width,
        .c = gradient->dinput,
        .c_leading = layer->width,
        .beta = direction > 0,
    };
    NAME(multiply)(&data, plan->threads);
}

static void NAME(lstm_backward)(const struct work *work, struct trace *trace)
{
    const struct lstm_plan *plan = work->plan;
    const struct lstm *s = &plan->shape;
    REAL *scratch = work->scratch;
    struct NAME(gradient) gradient = {
        .dy = work->input[TENSOR_OUTPUT],
        .dgates = scratch + plan->dgates,
        .dhidden = scratch + plan->dhidden,
        .dcell = scratch + plan->dcell,
        .dw = work->result[TENSOR_WEIGHT],
    };
    for (int64_t index = s->layers - 1; index >= 0; --index) {
        struct NAME(layer) layer = NAME(layer_find)(work, index);
        gradient.dinput =
            index == 0 ? work->result[TENSOR_INPUT] : scratch + plan->dinput[index % 2];
        memset(gradient.dcell, 0,
               (size_t)(s->directions * s->batch * s->hidden) * sizeof *gradient.dcell);
        for (int64_t t = s->sequence - 1; t >= 0; --t) {
            double begin = trace_begin(trace);
#pragma omp parallel for schedule(static)
            for (int64_t i = 0; i < step_count(plan); ++i)
                NAME(step_backward)(s, &layer, &gradient, step_find(plan, t, i));
            trace_end(trace, "lstm_step_backward", begin);
        }
        double begin = trace_begin(trace);
#pragma omp parallel
        for (int64_t direction = 0; direction < s->directions; ++direction)
            NAME(direction_backward)(plan, &layer, &gradient, index, direction);
        trace_end(trace, "lstm_gradient_products", begin);
        gradient.dy = gradient.dinput;
    }
}
