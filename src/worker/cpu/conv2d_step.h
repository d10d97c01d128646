/* The parts of a pass in their order, in one precision: a template, see real.h; written for conv2d.c. */
#include "worker/cpu/real.h"

/* A convolution alone, by plan->shape.pass. Two of x, w, y are inputs, one is the result; a fused
 * forward one takes the bias, if there is one. */
typedef void NAME(convolution)(const struct conv2d_plan *plan, REAL *x, REAL *w, REAL *y,
                               const REAL *b, REAL *scratch);

static void NAME(direct)(const struct conv2d_plan *plan, REAL *x, REAL *w, REAL *y, const REAL *b,
                         REAL *scratch)
{
    const struct conv2d *s = &plan->shape;
    bool data = s->pass == CONV2D_BACKWARD_DATA, filter = s->pass == CONV2D_BACKWARD_FILTER;
    const REAL *first = data ? w : x, *second = data || filter ? y : w;
    REAL *result = data ? x : filter ? w : y;
    int64_t size = data ? conv2d_x_size(s) : filter ? conv2d_w_size(s) : conv2d_y_size(s);
    (void)scratch;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < size; ++i) {
        result[i] = NAME(element)(s, first, second, i);
        if (plan->fused)
            NAME(finish_row)(s->activation, NULL, b ? b[conv2d_filter_of(s, i)] : 0, &result[i], 1);
    }
}

static void NAME(step_forward)(struct work *work, NAME(convolution) * convolve, struct trace *trace)
{
    const struct conv2d_step *step = work->plan;
    REAL *y = work->result[TENSOR_OUTPUT];
    const REAL *b = work->input[TENSOR_BIAS];
    double begin = trace_begin(trace);
    convolve(&step->forward, work->input[TENSOR_INPUT], work->input[TENSOR_WEIGHT], y, b,
             work->scratch);
    trace_end(trace, step->names[step->forward.fused ? NAME_FUSED : NAME_FORWARD], begin);
    if (step->forward.fused || !has_layer(&step->shape))
        return;
    begin = trace_begin(trace);
    NAME(finish)(&step->shape, y, b);
    trace_end(trace, "conv2d_bias_activation", begin);
}

/* dz, which is dy without an activation. */
static REAL *NAME(step_dz)(struct work *work, struct trace *trace)
{
    const struct conv2d_step *step = work->plan;
    if (!conv2d_has_dz(&step->shape))
        return work->input[TENSOR_OUTPUT];
    REAL *dz = (REAL *)work->scratch + step->dz;
    double begin = trace_begin(trace);
    NAME(differentiate)(&step->shape, work->input[TENSOR_OUTPUT], work->result[TENSOR_OUTPUT], dz);
    trace_end(trace, "conv2d_activation_gradient", begin);
    return dz;
}

static void NAME(step_backward)(struct work *work, NAME(convolution) * convolve,
                                struct conv2d_parts parts, struct trace *trace)
{
    const struct conv2d_step *step = work->plan;
    REAL *dz = NAME(step_dz)(work, trace);
    double begin = trace_begin(trace);
    if (work->writes[TENSOR_BIAS]) {
        NAME(bias_gradient)(&step->shape, dz, work->result[TENSOR_BIAS]);
        trace_end(trace, "conv2d_bias_gradient", begin);
    }
    begin = trace_begin(trace);
    if (parts.data) {
        convolve(&step->data, work->result[TENSOR_INPUT], work->input[TENSOR_WEIGHT], dz, NULL,
                 work->scratch);
        trace_end(trace, step->names[NAME_DATA], begin);
    }
    begin = trace_begin(trace);
    if (parts.filter) {
        convolve(&step->filter, work->input[TENSOR_INPUT], work->result[TENSOR_WEIGHT], dz, NULL,
                 work->scratch);
        trace_end(trace, step->names[NAME_FILTER], begin);
    }
}

static void NAME(step_update)(struct work *work, struct trace *trace)
{
    double begin = trace_begin(trace);
    NAME(update)
    (work->input[TENSOR_WEIGHT], work->result[TENSOR_WEIGHT], work->result[TENSOR_WEIGHT_UPDATED],
     work->size[TENSOR_WEIGHT]);
    if (work->writes[TENSOR_BIAS_UPDATED])
        NAME(update)
    (work->input[TENSOR_BIAS], work->result[TENSOR_BIAS], work->result[TENSOR_BIAS_UPDATED],
     work->size[TENSOR_BIAS]);
    trace_end(trace, "conv2d_update", begin);
}

static void NAME(step)(struct work *work, struct conv2d_parts parts, struct trace *trace)
{
    const struct conv2d_step *step = work->plan;
    NAME(convolution) *convolve = step->direct ? NAME(direct) : NAME(im2col);
    if (parts.forward)
        NAME(step_forward)(work, convolve, trace);
    if (parts.data || parts.filter)
        NAME(step_backward)(work, convolve, parts, trace);
    if (parts.update)
        NAME(step_update)(work, trace);
}
