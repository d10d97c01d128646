/* Recurrent layers on the CPU, in products of single-threaded CBLAS made by the threads of OpenMP regions.
 *
 * forward, for each layer: one region multiplies the input of all time steps by the input matrices.
 * Then one region for each step adds the recurrent product and applies the gates.
 *
 * backward: one region for each step, from the last to the first. Then one region makes the products
 * over all steps, for the weights and for the input. A projection takes another region for each step,
 * either way.
 *
 * In every step a thread has the same units, so its part of the recurrent matrix stays in its cache.
 * Where there are too few units for the threads, the samples are divided as well. The two directions
 * run side by side. */
#include "worker/cpu/lstm.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "model/workloads/lstm.h"
#include "worker/cpu/blas.h"

/* How the CBLAS routine cuts an LSTM, and where its arrays lie in the scratch
 * memory. */
struct lstm_plan {
    struct lstm shape;
    int threads;
    bool keep; /* a training pass: gates and cells of all layers and steps stay */
    int64_t row_parts, unit_parts;    /* of one direction's time step */
    size_t hidden, cell, gates, wide; /* offsets in elements */
    size_t dgates, doutput, dwide, carried, dinput[2];
};

/* Sums that one recurrent product makes: the input's product is there already, or is not in them. */
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

/* What one task of a time step does: some samples, units and outputs of one direction. Without a
 * projection these are the same. */
struct step {
    int64_t direction;
    int64_t t, before, after; /* the step, and its neighbours in the direction's own order */
    int64_t row_begin, row_end, unit_begin, unit_end, output_begin, output_end;
};

static int64_t step_count(const struct lstm_plan *plan)
{
    return plan->shape.directions * plan->row_parts * plan->unit_parts;
}

/* `order` counts the steps in the direction's own order. */
static struct step step_find(const struct lstm_plan *plan, int64_t order, int64_t index)
{
    const struct lstm *s = &plan->shape;
    int64_t unit = index % plan->unit_parts, row = index / plan->unit_parts % plan->row_parts;
    int64_t direction = index / plan->unit_parts / plan->row_parts, ahead = direction ? -1 : 1;
    int64_t t = direction ? s->sequence - 1 - order : order;
    return (struct step){
        .direction = direction,
        .t = t,
        .before = t - ahead,
        .after = t + ahead,
        .row_begin = share_begin(s->batch, row, plan->row_parts),
        .row_end = share_begin(s->batch, row + 1, plan->row_parts),
        .unit_begin = share_begin(s->hidden, unit, plan->unit_parts),
        .unit_end = share_begin(s->hidden, unit + 1, plan->unit_parts),
        .output_begin = share_begin(s->output, unit, plan->unit_parts),
        .output_end = share_begin(s->output, unit + 1, plan->unit_parts),
    };
}

/* Into how many parts to cut the rows of an m x n product, a divisor of the threads, so that the
 * parts have the least edge and so the least traffic. */
static int64_t product_rows(int64_t m, int64_t n, int threads)
{
    int64_t best = 1;
    double least = 0.0;
    for (int64_t parts = 1; parts <= threads; ++parts) {
        double edge = (double)m / (double)parts + (double)n * (double)parts / threads;
        if (threads % parts == 0 && (parts == 1 || edge < least)) {
            least = edge;
            best = parts;
        }
    }
    return best;
}

#define REAL_BITS 32
#include "worker/cpu/lstm_cblas.h"
#include "worker/cpu/lstm_backward_cblas.h"
#undef REAL_BITS
#define REAL_BITS 64
#include "worker/cpu/lstm_cblas.h"
#include "worker/cpu/lstm_backward_cblas.h"
#undef REAL_BITS

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Takes `count` elements of the scratch memory, from a new page on. */
static size_t scratch_take(struct work *work, int64_t count)
{
    const size_t page = 4096;
    size_t offset = work->scratch_size / work->element;
    work->scratch_size += ((size_t)count * work->element + page - 1) / page * page;
    return offset;
}

static void plan_scratch(struct work *work)
{
    struct lstm_plan *plan = work->plan;
    const struct lstm *s = &plan->shape;
    int64_t units = s->directions * s->batch * s->hidden, rows = s->sequence + 2;
    int64_t outputs = s->directions * s->batch * s->output, kept = plan->keep ? s->layers : 1;
    int64_t cells = s->kind == LSTM_LSTM ? units : 0, wide = s->projection ? units : 0;
    work->scratch_size = 0;
    plan->hidden = scratch_take(work, s->layers * rows * outputs);
    plan->cell = scratch_take(work, plan->keep ? s->layers * rows * cells : cells);
    plan->gates = scratch_take(work, kept * s->sequence * units * s->cell->sums);
    plan->wide = scratch_take(work, plan->keep ? s->layers * s->sequence * wide : wide);
    if (!plan->keep)
        return;
    plan->dgates = scratch_take(work, rows * units * s->cell->sums);
    plan->doutput = scratch_take(work, s->projection ? s->sequence * outputs : outputs);
    plan->dwide = scratch_take(work, wide);
    plan->carried = scratch_take(work, units);
    for (int i = 0; i < 2; ++i)
        plan->dinput[i] = scratch_take(work, s->layers > 1 ? s->sequence * outputs : 0);
}

void lstm_tensors(struct work *work, const struct lstm *s)
{
    bool backward = s->pass == LSTM_BACKWARD;
    work->size[TENSOR_INPUT] = lstm_x_size(s);
    work->size[TENSOR_WEIGHT] = lstm_w_size(s);
    work->size[TENSOR_OUTPUT] = lstm_y_size(s);
    work->reads[TENSOR_INPUT] = work->reads[TENSOR_WEIGHT] = true;
    work->writes[TENSOR_INPUT] = work->writes[TENSOR_WEIGHT] = backward;
    work->reads[TENSOR_OUTPUT] = backward;
    work->writes[TENSOR_OUTPUT] = true;
}

static enum status cblas_plan(struct work *work, const struct topology *topology,
                              struct error *error)
{
    const int64_t units_worthwhile = 32, rows_worthwhile = 4;
    struct lstm_plan *plan = work->plan;
    struct lstm s = lstm_from(&work->config);
    const int64_t extents[] = {s.cell->sums * s.hidden, s.features, s.sequence * s.batch};
    enum status status = blas_check(extents, sizeof extents / sizeof *extents, error);
    if (status)
        return status;
    int64_t threads = clamp(topology->cores / s.directions, 1, INT64_MAX);
    *plan = (struct lstm_plan){
        .shape = s,
        .threads = topology->cores,
        .keep = s.pass == LSTM_BACKWARD,
        .unit_parts = clamp(s.hidden / units_worthwhile, 1, threads),
    };
    plan->row_parts = clamp(s.batch / rows_worthwhile, 1, threads / plan->unit_parts);
    lstm_tensors(work, &s);
    work->bound[TENSOR_OUTPUT] = true;
    plan_scratch(work);
    return STATUS_OK;
}

static void cblas_bind(struct work *work)
{
    const struct lstm_plan *plan = work->plan;
    const struct lstm *s = &plan->shape;
    int64_t row = s->batch * s->output * s->directions;
    int64_t offset = (int64_t)plan->hidden + ((s->layers - 1) * (s->sequence + 2) + 1) * row;
    work->result[TENSOR_OUTPUT] = (char *)work->scratch + (size_t)offset * work->element;
}

static void cblas_forward(struct work *work, struct trace *trace)
{
    (work->precision == PRECISION_FP64 ? lstm_forward_fp64 : lstm_forward_fp32)(work, trace);
}

static void cblas_before(struct work *work)
{
    const struct lstm_plan *plan = work->plan;
    if (plan->keep)
        cblas_forward(work, NULL);
}

static void cblas_run(struct work *work, struct trace *trace)
{
    const struct lstm_plan *plan = work->plan;
    if (!plan->keep)
        cblas_forward(work, trace);
    else
        (work->precision == PRECISION_FP64 ? lstm_backward_fp64 : lstm_backward_fp32)(work, trace);
}

/* Of each time step. */
void lstm_gradient_shape(const struct work *work, int64_t *sample, int64_t *batch)
{
    struct lstm s = lstm_from(&work->config);
    *sample = s.output * s.directions;
    *batch = s.batch;
}

const struct routine lstm_cblas = {
    .workload = &lstm_workload,
    .implementation = "cblas",
    .algorithm = "gemm",
    .plan_size = sizeof(struct lstm_plan),
    .plan = cblas_plan,
    .bind = cblas_bind,
    .before = cblas_before,
    .run = cblas_run,
    .gradient_shape = lstm_gradient_shape,
};
