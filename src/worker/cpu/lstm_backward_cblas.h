/* The way back through recurrent layers in one precision: a template, see real.h. Written for lstm.c,
 * behind lstm_cblas.h. */

/* The gradients on their way down, of one layer. */
struct NAME(gradient) {
    const struct NAME(layer) * layer;
    const REAL *dy; /* [T][N][D * R] */
    /* per direction: of the sums, [T + 2][N][S][H] with margin; of the outputs, [N][R], or with a
     * projection of all steps, [T][N][R]; before it [N][H]; of the states [N][H] */
    REAL *dgates, *doutput, *dwide, *carried;
    int64_t doutput_step;
    REAL *dinput, *dw; /* [T][N][width]; the whole of w's gradient */
};

static REAL *NAME(dgates_at)(const struct lstm *s, const struct NAME(gradient) * gradient,
                             int64_t direction, int64_t t)
{
    return gradient->dgates +
           (direction * (s->sequence + 2) + t + 1) * s->batch * s->cell->sums * s->hidden;
}

static REAL *NAME(doutput_at)(const struct lstm *s, const struct NAME(gradient) * gradient,
                              int64_t direction, int64_t t)
{
    int64_t steps = gradient->doutput_step ? s->sequence : 1;
    return gradient->doutput + direction * steps * s->batch * s->output +
           t * gradient->doutput_step;
}

/* The outputs' gradient, of some of them: from above, and from the later step's sums. */
static void NAME(outputs_backward)(const struct lstm *s, const struct NAME(gradient) * gradient,
                                   struct step step)
{
    const struct blocks *blocks = &recurrent_blocks[s->kind];
    const REAL *dy = gradient->dy + step.t * s->batch * s->output * s->directions +
                     step.direction * s->output + step.output_begin;
    REAL *doutput = NAME(doutput_at)(s, gradient, step.direction, step.t);
    size_t bytes = (size_t)(step.output_end - step.output_begin) * sizeof *dy;
    for (int64_t n = step.row_begin; n < step.row_end; ++n)
        memcpy(doutput + n * s->output + step.output_begin, dy + n * s->output * s->directions,
               bytes);
    for (int i = 0; i < blocks->count; ++i) {
        const struct block *block = &blocks->blocks[i];
        struct NAME(product) product = {
            .a_order = CblasNoTrans,
            .b_order = CblasNoTrans,
            .m = s->batch,
            .n = s->output,
            .k = block->count * s->hidden,
            .a = NAME(dgates_at)(s, gradient, step.direction, step.after) + block->sum * s->hidden,
            .a_leading = s->cell->sums * s->hidden,
            .b = gradient->layer->matrix[step.direction][LSTM_RECURRENT_MATRIX] +
                 block->gate * s->hidden * s->output,
            .b_leading = s->output,
            .c = doutput,
            .c_leading = s->output,
            .beta = 1,
        };
        NAME(multiply_part)
        (&product, step.row_begin, step.row_end, step.output_begin, step.output_end);
    }
}

/* The units' gradient, of some units, by way of the projection. */
static void NAME(wide_backward)(const struct lstm *s, const struct NAME(gradient) * gradient,
                                struct step step)
{
    struct NAME(product) product = {
        .a_order = CblasNoTrans,
        .b_order = CblasNoTrans,
        .m = s->batch,
        .n = s->hidden,
        .k = s->projection,
        .a = NAME(doutput_at)(s, gradient, step.direction, step.t),
        .a_leading = s->output,
        .b = gradient->layer->matrix[step.direction][LSTM_PROJECTION],
        .b_leading = s->hidden,
        .c = gradient->dwide + step.direction * s->batch * s->hidden,
        .c_leading = s->hidden,
    };
    NAME(multiply_part)(&product, step.row_begin, step.row_end, step.unit_begin, step.unit_end);
}

static void NAME(units_backward)(const struct lstm *s, const struct NAME(gradient) * gradient,
                                 struct step step)
{
    const struct NAME(layer) *layer = gradient->layer;
    int64_t hidden = s->hidden, sums = s->cell->sums * hidden, stride;
    int64_t own = step.direction * s->batch * hidden;
    const REAL *d = s->projection ? gradient->dwide + own
                                  : NAME(doutput_at)(s, gradient, step.direction, step.t);
    for (int64_t n = step.row_begin; n < step.row_end; ++n) {
        int64_t u = step.unit_begin;
        NAME(differentiate)
        [s->kind](&(struct NAME(gradients)){
            .count = step.unit_end - u,
            .hidden = hidden,
            .gates = NAME(gates_at)(s, layer, step.direction, step.t) + n * sums + u,
            .before =
                NAME(state_at)(s, layer, step.direction, step.before, &stride) + n * stride + u,
            .state = NAME(state_at)(s, layer, step.direction, step.t, &stride) + n * stride + u,
            .d = d + n * hidden + u,
            .carried = gradient->carried + own + n * hidden + u,
            .dgates = NAME(dgates_at)(s, gradient, step.direction, step.t) + n * sums + u,
        });
    }
}

/* Without a projection a task's outputs are its units, so nothing stands between the two. */
static void NAME(step_backward)(const struct lstm *s, const struct NAME(gradient) * gradient,
                                struct step step)
{
    NAME(outputs_backward)(s, gradient, step);
    if (!s->projection)
        NAME(units_backward)(s, gradient, step);
}

static void NAME(step_backward_wide)(const struct lstm *s, const struct NAME(gradient) * gradient,
                                     struct step step)
{
    NAME(wide_backward)(s, gradient, step);
    NAME(units_backward)(s, gradient, step);
}

/* Within a region: the column sums of the sums' gradients. */
static void NAME(sum_bias)(const struct lstm *s, const REAL *dgates, REAL *dbias)
{
    int64_t columns = s->cell->sums * s->hidden, block = 16, blocks = (columns + block - 1) / block;
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

/* Within a region: the gradients of one direction's weights. */
static void NAME(weights_backward)(const struct lstm_plan *plan,
                                   const struct NAME(gradient) * gradient, int64_t index,
                                   int64_t direction)
{
    const struct lstm *s = &plan->shape;
    const struct NAME(layer) *layer = gradient->layer;
    const struct blocks *blocks = &recurrent_blocks[s->kind];
    const REAL *dgates = NAME(dgates_at)(s, gradient, direction, 0);
    REAL *recurrent = gradient->dw + lstm_w_at(s, index, direction, LSTM_RECURRENT_MATRIX);
    struct NAME(product) weights = {
        .a_order = CblasTrans,
        .b_order = CblasNoTrans,
        .m = s->cell->gates * s->hidden,
        .n = layer->width,
        .k = s->sequence * s->batch,
        .a = dgates,
        .a_leading = s->cell->sums * s->hidden,
        .b = layer->input,
        .b_leading = layer->width,
        .c = gradient->dw + lstm_w_at(s, index, direction, LSTM_INPUT_MATRIX),
        .c_leading = layer->width,
    };
    NAME(multiply)(&weights, plan->threads);
    weights.n = weights.c_leading = s->output;
    weights.b = NAME(hidden_at)(s, layer, direction, direction ? 1 : -1); /* of the step before */
    weights.b_leading = s->output * s->directions;
    for (int i = 0; i < blocks->count; ++i) {
        const struct block *block = &blocks->blocks[i];
        weights.m = block->count * s->hidden;
        weights.a = dgates + block->sum * s->hidden;
        weights.c = recurrent + block->gate * s->hidden * s->output;
        NAME(multiply)(&weights, plan->threads);
    }
    NAME(sum_bias)(s, dgates, gradient->dw + lstm_w_at(s, index, direction, LSTM_BIAS));
}

/* Within a region. */
static void NAME(projection_backward)(const struct lstm_plan *plan,
                                      const struct NAME(gradient) * gradient, int64_t index,
                                      int64_t direction)
{
    const struct lstm *s = &plan->shape;
    struct NAME(product) weights = {
        .a_order = CblasTrans,
        .b_order = CblasNoTrans,
        .m = s->projection,
        .n = s->hidden,
        .k = s->sequence * s->batch,
        .a = NAME(doutput_at)(s, gradient, direction, 0),
        .a_leading = s->output,
        .b = NAME(wide_at)(gradient->layer, direction, 0),
        .b_leading = s->hidden,
        .c = gradient->dw + lstm_w_at(s, index, direction, LSTM_PROJECTION),
        .c_leading = s->hidden,
    };
    NAME(multiply)(&weights, plan->threads);
}

/* Within a region: what one direction contributes to the input's gradient. */
static void NAME(input_backward)(const struct lstm_plan *plan,
                                 const struct NAME(gradient) * gradient, int64_t direction)
{
    const struct lstm *s = &plan->shape;
    int64_t width = gradient->layer->width;
    struct NAME(product) data = {
        .a_order = CblasNoTrans,
        .b_order = CblasNoTrans,
        .m = s->sequence * s->batch,
        .n = width,
        .k = s->cell->gates * s->hidden,
        .a = NAME(dgates_at)(s, gradient, direction, 0),
        .a_leading = s->cell->sums * s->hidden,
        .b = gradient->layer->matrix[direction][LSTM_INPUT_MATRIX],
        .b_leading = width,
        .c = gradient->dinput,
        .c_leading = width,
        .beta = direction > 0,
    };
    NAME(multiply)(&data, plan->threads);
}

typedef void NAME(step_gradient)(const struct lstm *, const struct NAME(gradient) *, struct step);

/* A region: all tasks of one time step. */
static void NAME(step_run_back)(const struct lstm_plan *plan,
                                const struct NAME(gradient) * gradient, int64_t t,
                                NAME(step_gradient) * function, const char *name,
                                struct trace *trace)
{
    double begin = trace_begin(trace);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < step_count(plan); ++i)
        function(&plan->shape, gradient, step_find(plan, t, i));
    trace_end(trace, name, begin);
}

static void NAME(products_backward)(const struct lstm_plan *plan,
                                    const struct NAME(gradient) * gradient, int64_t index,
                                    struct trace *trace)
{
    double begin = trace_begin(trace);
#pragma omp parallel
    for (int64_t direction = 0; direction < plan->shape.directions; ++direction) {
        NAME(weights_backward)(plan, gradient, index, direction);
        if (plan->shape.projection)
            NAME(projection_backward)(plan, gradient, index, direction);
        NAME(input_backward)(plan, gradient, direction);
    }
    trace_end(trace, "lstm_gradient_products", begin);
}

static void NAME(lstm_backward)(const struct work *work, struct trace *trace)
{
    const struct lstm_plan *plan = work->plan;
    const struct lstm *s = &plan->shape;
    REAL *scratch = work->scratch;
    size_t states = (size_t)(s->directions * s->batch * s->hidden) * sizeof(REAL);
    struct NAME(gradient) gradient = {
        .dy = work->input[TENSOR_OUTPUT],
        .dgates = scratch + plan->dgates,
        .doutput = scratch + plan->doutput,
        .doutput_step = s->projection ? s->batch * s->output : 0,
        .dwide = scratch + plan->dwide,
        .carried = scratch + plan->carried,
        .dw = work->result[TENSOR_WEIGHT],
    };
    for (int64_t index = s->layers - 1; index >= 0; --index) {
        struct NAME(layer) layer = NAME(layer_find)(work, index);
        gradient.layer = &layer;
        gradient.dinput =
            index == 0 ? work->result[TENSOR_INPUT] : scratch + plan->dinput[index % 2];
        memset(gradient.carried, 0, states);
        for (int64_t t = s->sequence - 1; t >= 0; --t) {
            NAME(step_run_back)
            (plan, &gradient, t, NAME(step_backward), "lstm_step_backward", trace);
            if (s->projection)
                NAME(step_run_back)
            (plan, &gradient, t, NAME(step_backward_wide), "lstm_step_backward_projection", trace);
        }
        NAME(products_backward)(plan, &gradient, index, trace);
        gradient.dy = gradient.dinput;
    }
}
