/* Softmax on the CPU: by oneDNN, and as loops over the rows of each thread. */
#include <math.h>
#include <string.h>

#include "model/workloads/softmax.h"
#include "worker/cpu/onednn.h"
#include "worker/cpu/routine.h"

#ifdef REAL
#include "worker/cpu/functions_real.h"

static void NAME(forward)(const struct work *work)
{
    const struct softmax *s = work->shape;
    const REAL *x = work->input[TENSOR_INPUT];
    REAL *y = work->result[TENSOR_OUTPUT];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < s->rows; ++row)
        NAME(row_softmax)(s->columns, x + row * s->columns, y + row * s->columns);
}

static void NAME(backward)(const struct work *work)
{
    const struct softmax *s = work->shape;
    const REAL *all_y = work->input[TENSOR_INPUT], *all_dy = work->input[TENSOR_OUTPUT];
    REAL *all_dx = work->result[TENSOR_INPUT];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < s->rows; ++row) {
        const REAL *y = all_y + row * s->columns, *dy = all_dy + row * s->columns;
        REAL *dx = all_dx + row * s->columns;
        double sum = 0;
        for (int64_t first = 0; first < s->columns; first = sum_end(first, s->columns)) {
            REAL part = 0;
#pragma omp simd reduction(+ : part)
            for (int64_t i = first; i < sum_end(first, s->columns); ++i)
                part += y[i] * dy[i];
            sum += (double)part;
        }
#pragma omp simd
        for (int64_t i = 0; i < s->columns; ++i)
            dx[i] = y[i] * (dy[i] - (REAL)sum);
    }
}

#else
#define REAL_TEMPLATE "worker/cpu/softmax.c"
#include "worker/cpu/real.h"

CPU_SHAPE(softmax)

static void plain_run(struct work *work, struct trace *trace)
{
    static const struct region regions[] = {
        [SOFTMAX_FORWARD] = {"softmax_forward", forward_fp32, forward_fp64},
        [SOFTMAX_BACKWARD] = {"softmax_backward", backward_fp32, backward_fp64},
    };
    region_run(&regions[((const struct softmax *)work->shape)->pass], work, trace);
}

#ifdef ROOFSWEEP_ONEDNN
static enum status rows_plan(struct work *work, struct error *error)
{
    /* In backward, y and dx act as the input. */
    static const struct onednn_roles roles[] = {
        [SOFTMAX_FORWARD] = {.inputs = {[TENSOR_INPUT] = ONEDNN_SOURCE},
                             .results = {[TENSOR_OUTPUT] = ONEDNN_DESTINATION}},
        [SOFTMAX_BACKWARD] =
            {.inputs =
                 {[TENSOR_INPUT] = ONEDNN_DESTINATION, [TENSOR_OUTPUT] = ONEDNN_DIFF_DESTINATION},
             .results = {[TENSOR_INPUT] = ONEDNN_DIFF_SOURCE}},
    };
    const int64_t most = 1 << 20;
    const struct softmax *s = work->shape;
    bool forward = s->pass == SOFTMAX_FORWARD;
    if (s->columns > most)
        return error_set(
            error, STATUS_UNSUPPORTED,
            "oneDNN adds a row in fp32, which is inaccurate for more than %lld columns",
            (long long)most);
    const struct onednn_tensor matrix =
        onednn_matrix(s->precision, ONEDNN_PLAIN, s->rows, s->columns);
    struct onednn_operation operation = {
        .kind = ONEDNN_SOFTMAX,
        .pass = forward ? ONEDNN_INFERENCE : ONEDNN_BACKWARD,
        .tensors = {[ONEDNN_DESTINATION] = matrix},
    };
    operation.tensors[forward ? ONEDNN_SOURCE : ONEDNN_DIFF_SOURCE] = matrix;
    if (!forward)
        operation.tensors[ONEDNN_DIFF_DESTINATION] = matrix;
    return onednn_plan_operation(work, &operation, &roles[s->pass], error);
}
#endif

const struct cpu_workload softmax_routines = {
    CPU_WORKLOAD(softmax),
    .routines =
        {
#ifdef ROOFSWEEP_ONEDNN
            {.implementation = "onednn", ONEDNN_ROUTINE(rows_plan)},
#endif
            {.implementation = "plain", .algorithm = "loop", .run = plain_run},
        },
};
#endif
