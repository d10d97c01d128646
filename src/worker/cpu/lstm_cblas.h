/* Recurrent layers in one precision: a template, see real.h. Written for lstm.c, which explains it. */
#include "worker/cpu/lstm_cells_real.h"

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

/* The arrays of one layer. A step t of those with a margin is row t + 1: a zero row stands for the
 * state before the first step, on either end. With S sums, H units and R outputs of a direction: */
struct NAME(layer) {
    const REAL *input;  /* [T][N][width] */
    REAL *hidden;       /* [T + 2][N][D * R], with margin */
    REAL *cell, *gates; /* per direction: [T + 2][N][H], with margin; [T][N][S][H] */
    REAL *wide;         /* before a projection; per direction: [T][N][H] */
    int64_t cell_step;  /* elements from one step's cells to the next; 0: they are overwritten */
    int64_t wide_step;  /* the same of `wide` */
    int64_t cell_direction;            /* from one direction's to the other's */
    int64_t wide_direction;            /* the same of `wide` */
    int64_t width;                     /* of the input */
    const REAL *matrix[2][LSTM_PARTS]; /* by direction */
};

static struct NAME(layer) NAME(layer_find)(const struct work *work, int64_t index)
{
    const struct lstm_plan *plan = work->plan;
    const struct lstm *s = &plan->shape;
    REAL *scratch = work->scratch;
    int64_t units = s->batch * s->hidden, row = s->batch * s->output * s->directions;
    int64_t rows = s->sequence + 2, kept = plan->keep ? index : 0;
    struct NAME(layer) layer = {
        .hidden = scratch + plan->hidden + index * rows * row,
        .cell_step = plan->keep ? units : 0,
        .wide_step = plan->keep ? units : 0,
        .cell_direction = plan->keep ? rows * units : units,
        .wide_direction = plan->keep ? s->sequence * units : units,
        .gates = scratch + plan->gates + kept * s->directions * s->sequence * units * s->cell->sums,
        .width = lstm_input_width(s, index),
    };
    layer.cell = scratch + plan->cell + kept * s->directions * layer.cell_direction;
    layer.wide = scratch + plan->wide + kept * s->directions * layer.wide_direction;
    layer.input =
        index == 0 ? (const REAL *)work->input[TENSOR_INPUT] : layer.hidden - rows * row + row;
    for (int64_t direction = 0; direction < s->directions; ++direction)
        for (int part = 0; part < LSTM_PARTS; ++part)
            layer.matrix[direction][part] = (const REAL *)work->input[TENSOR_WEIGHT] +
                                            lstm_w_at(s, index, direction, (enum lstm_part)part);
    return layer;
}

/* The outputs of direction and step t; t may be -1 or T. */
static REAL *NAME(hidden_at)(const struct lstm *s, const struct NAME(layer) * layer,
                             int64_t direction, int64_t t)
{
    return layer->hidden + (t + 1) * s->batch * s->output * s->directions + direction * s->output;
}

/* A unit's states, from one sample to the next `stride` further on. Of an LSTM they are its cells, else
 * its outputs. */
static REAL *NAME(state_at)(const struct lstm *s, const struct NAME(layer) * layer,
                            int64_t direction, int64_t t, int64_t *stride)
{
    bool own = s->kind == LSTM_LSTM;
    *stride = own ? s->hidden : s->output * s->directions;
    return own ? layer->cell + direction * layer->cell_direction + (t + 1) * layer->cell_step
               : NAME(hidden_at)(s, layer, direction, t);
}

static REAL *NAME(wide_at)(const struct NAME(layer) * layer, int64_t direction, int64_t t)
{
    return layer->wide + direction * layer->wide_direction + t * layer->wide_step;
}

static REAL *NAME(gates_at)(const struct lstm *s, const struct NAME(layer) * layer,
                            int64_t direction, int64_t t)
{
    return layer->gates + (direction * s->sequence + t) * s->batch * s->cell->sums * s->hidden;
}

/* Adds the product of the outputs before, of some units, or sets it. */
static void NAME(recur)(const struct lstm *s, const struct NAME(layer) * layer, struct step step,
                        const struct block *block)
{
    int64_t hidden = s->hidden, units = step.unit_end - step.unit_begin;
    struct NAME(product) product = {
        .a_order = CblasNoTrans,
        .b_order = CblasTrans,
        .m = s->batch,
        .n = block->count * hidden,
        .k = s->output,
        .a = NAME(hidden_at)(s, layer, step.direction, step.before),
        .a_leading = s->output * s->directions,
        .b =
            layer->matrix[step.direction][LSTM_RECURRENT_MATRIX] + block->gate * hidden * s->output,
        .b_leading = s->output,
        .c = NAME(gates_at)(s, layer, step.direction, step.t) + block->sum * hidden,
        .c_leading = s->cell->sums * hidden,
        .beta = block->adds ? 1 : 0,
    };
    if (units == hidden) /* all gates at once */
        NAME(multiply_part)(&product, step.row_begin, step.row_end, 0, product.n);
    for (int64_t gate = 0; units < hidden && gate < block->count; ++gate) {
        int64_t first = gate * hidden + step.unit_begin;
        NAME(multiply_part)(&product, step.row_begin, step.row_end, first, first + units);
    }
}

static void NAME(step_forward)(const struct lstm *s, const struct NAME(layer) * layer,
                               struct step step)
{
    int64_t hidden = s->hidden, sums = s->cell->sums * hidden, stride;
    const struct blocks *blocks = &recurrent_blocks[s->kind];
    for (int i = 0; i < blocks->count; ++i)
        NAME(recur)(s, layer, step, &blocks->blocks[i]);
    int64_t out_stride = s->projection ? hidden : s->output * s->directions;
    REAL *out = s->projection ? NAME(wide_at)(layer, step.direction, step.t)
                              : NAME(hidden_at)(s, layer, step.direction, step.t);
    for (int64_t n = step.row_begin; n < step.row_end; ++n) {
        int64_t u = step.unit_begin;
        NAME(activate)
        [s->kind](&(struct NAME(units)){
            .count = step.unit_end - u,
            .hidden = hidden,
            .bias = layer->matrix[step.direction][LSTM_BIAS] + u,
            .gates = NAME(gates_at)(s, layer, step.direction, step.t) + n * sums + u,
            .before =
                NAME(state_at)(s, layer, step.direction, step.before, &stride) + n * stride + u,
            .state = NAME(state_at)(s, layer, step.direction, step.t, &stride) + n * stride + u,
            .h = out + n * out_stride + u,
        });
    }
}

static void NAME(step_project)(const struct lstm *s, const struct NAME(layer) * layer,
                               struct step step)
{
    struct NAME(product) product = {
        .a_order = CblasNoTrans,
        .b_order = CblasTrans,
        .m = s->batch,
        .n = s->projection,
        .k = s->hidden,
        .a = NAME(wide_at)(layer, step.direction, step.t),
        .a_leading = s->hidden,
        .b = layer->matrix[step.direction][LSTM_PROJECTION],
        .b_leading = s->hidden,
        .c = NAME(hidden_at)(s, layer, step.direction, step.t),
        .c_leading = s->output * s->directions,
    };
    NAME(multiply_part)(&product, step.row_begin, step.row_end, step.output_begin, step.output_end);
}

static void NAME(input_product)(const struct work *work, const struct NAME(layer) * layer,
                                struct trace *trace)
{
    const struct lstm_plan *plan = work->plan;
    const struct lstm *s = &plan->shape;
    double begin = trace_begin(trace);
#pragma omp parallel
    for (int64_t direction = 0; direction < s->directions; ++direction) {
        struct NAME(product) product = {
            .a_order = CblasNoTrans,
            .b_order = CblasTrans,
            .m = s->sequence * s->batch,
            .n = s->cell->gates * s->hidden,
            .k = layer->width,
            .a = layer->input,
            .a_leading = layer->width,
            .b = layer->matrix[direction][LSTM_INPUT_MATRIX],
            .b_leading = layer->width,
            .c = NAME(gates_at)(s, layer, direction, 0),
            .c_leading = s->cell->sums * s->hidden,
        };
        NAME(multiply)(&product, plan->threads);
    }
    trace_end(trace, "lstm_input_product", begin);
}

typedef void NAME(step_function)(const struct lstm *, const struct NAME(layer) *, struct step);

/* A region: all tasks of one time step. */
static void NAME(step_run)(const struct lstm_plan *plan, const struct NAME(layer) * layer,
                           int64_t t, NAME(step_function) * function, const char *name,
                           struct trace *trace)
{
    double begin = trace_begin(trace);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < step_count(plan); ++i)
        function(&plan->shape, layer, step_find(plan, t, i));
    trace_end(trace, name, begin);
}

static void NAME(layer_forward)(const struct work *work, int64_t index, struct trace *trace)
{
    const struct lstm_plan *plan = work->plan;
    const struct lstm *s = &plan->shape;
    struct NAME(layer) layer = NAME(layer_find)(work, index);
    NAME(input_product)(work, &layer, trace);
    if (!plan->keep && s->kind == LSTM_LSTM)
        memset(layer.cell, 0, (size_t)(s->directions * layer.cell_direction) * sizeof *layer.cell);
    for (int64_t t = 0; t < s->sequence; ++t) {
        NAME(step_run)(plan, &layer, t, NAME(step_forward), "lstm_step_forward", trace);
        if (s->projection)
            NAME(step_run)(plan, &layer, t, NAME(step_project), "lstm_step_projection", trace);
    }
}

static void NAME(lstm_forward)(const struct work *work, struct trace *trace)
{
    for (int64_t layer = 0; layer < ((const struct lstm_plan *)work->plan)->shape.layers; ++layer)
        NAME(layer_forward)(work, layer, trace);
}
