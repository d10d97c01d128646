/* Fully connected layers. oneDNN applies bias and activation within the product, loops after it. */
#include <math.h>
#include <string.h>

#include "model/workloads/linear.h"
#include "worker/cpu/onednn.h"
#include "worker/cpu/routine.h"

#ifdef REAL
#include "worker/cpu/functions_real.h"

static void NAME(forward)(const struct work *work)
{
    const struct linear *s = work->shape;
    const REAL *x = work->input[TENSOR_INPUT], *w = work->input[TENSOR_WEIGHT];
    REAL *y = work->result[TENSOR_OUTPUT];
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t i = 0; i < s->batch; ++i)
        for (int64_t j = 0; j < s->outputs; ++j) {
            REAL sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t q = 0; q < s->inputs; ++q)
                sum += x[i * s->inputs + q] * w[j * s->inputs + q];
            y[i * s->outputs + j] = sum;
        }
}

/* Computes a gradient: each row is a sum of `terms` rows of `other`, with factors from dy. */
static void NAME(gradient)(const struct work *work, int64_t rows, int64_t terms, const REAL *other,
                           REAL *result)
{
    const struct linear *s = work->shape;
    const REAL *dy = work->input[TENSOR_OUTPUT];
    const bool data = s->pass == LINEAR_BACKWARD_DATA;
    const int64_t row_step = data ? s->outputs : 1, step = data ? 1 : s->outputs;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; ++i) {
        REAL *row = result + i * s->inputs;
        for (int64_t j = 0; j < s->inputs; ++j)
            row[j] = 0;
        for (int64_t q = 0; q < terms; ++q) {
            const REAL factor = dy[i * row_step + q * step], *term = other + q * s->inputs;
#pragma omp simd
            for (int64_t j = 0; j < s->inputs; ++j)
                row[j] += factor * term[j];
        }
    }
}

static void NAME(finish)(const struct work *work)
{
    const struct linear *s = work->shape;
    const REAL *bias = work->input[TENSOR_BIAS];
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->batch; ++i) {
        REAL *y = (REAL *)work->result[TENSOR_OUTPUT] + i * s->outputs;
        if (s->bias)
#pragma omp simd
            for (int64_t j = 0; j < s->outputs; ++j)
                y[j] += bias[j];
        if (s->activation == LINEAR_RELU)
#pragma omp simd
            for (int64_t j = 0; j < s->outputs; ++j)
                y[j] = y[j] > 0 ? y[j] : 0;
        if (s->activation == LINEAR_GELU)
#pragma omp simd
            for (int64_t j = 0; j < s->outputs; ++j) {
                REAL cube = (REAL)LINEAR_GELU_CUBIC * y[j] * y[j] * y[j];
                REAL inner = (REAL)LINEAR_GELU_SCALE * (y[j] + cube);
                y[j] = (REAL)0.5 * y[j] * (1 + NAME(hyperbolic_tangent)(inner));
            }
    }
}

/* Adds up rows of dy, so that loads are contiguous. */
static void NAME(bias_gradient)(const struct work *work)
{
    const struct linear *s = work->shape;
    const REAL *dy = work->input[TENSOR_OUTPUT];
    REAL *db = work->result[TENSOR_BIAS];
#pragma omp parallel
    for (int64_t i = 0; i < s->batch; ++i)
#pragma omp for simd schedule(static) nowait
        for (int64_t j = 0; j < s->outputs; ++j)
            db[j] = (i > 0 ? db[j] : 0) + dy[i * s->outputs + j];
}

static void NAME(layer)(const struct work *work)
{
    const struct linear *s = work->shape;
    if (s->pass == LINEAR_FORWARD)
        NAME(forward)(work);
    else if (s->pass == LINEAR_BACKWARD_DATA)
        NAME(gradient)
    (work, s->batch, s->outputs, work->input[TENSOR_WEIGHT], work->result[TENSOR_INPUT]);
    else NAME(gradient)(work, s->outputs, s->batch, work->input[TENSOR_INPUT],
                        work->result[TENSOR_WEIGHT]);
    if (s->pass == LINEAR_FORWARD && linear_has_epilogue(s))
        NAME(finish)(work);
    if (work->writes[TENSOR_BIAS])
        NAME(bias_gradient)(work);
}

#else

#define REAL_TEMPLATE "worker/cpu/linear.c"
#include "worker/cpu/real.h"

CPU_SHAPE(linear)

static enum status plain_plan(struct work *work, struct error *error)
{
    if (((const struct linear *)work->shape)->fusion == LINEAR_FUSED)
        return error_set(
            error, STATUS_UNSUPPORTED,
            "with loops bias and activation come after the product; fusion=fused needs "
            "a library that does them within it");
    return STATUS_OK;
}

#ifdef ROOFSWEEP_ONEDNN
/* Weights of forward and backward-data are packed before the timed run. The gradient of weights is
 * reordered to the user's layout within the timed run. */
static enum status onednn_plan(struct work *work, struct error *error)
{
    static const enum onednn_function functions[LINEAR_ACTIVATIONS] = {
        [LINEAR_NONE] = ONEDNN_IDENTITY,
        [LINEAR_RELU] = ONEDNN_RELU,
        [LINEAR_GELU] = ONEDNN_GELU,
    };
    /* The library's arguments for x, W, y and b. */
    static const struct {
        enum onednn_pass pass;
        enum onednn_place weights;
        enum onednn_argument x, w, y, b;
    } passes[] = {
        [LINEAR_FORWARD] = {ONEDNN_INFERENCE, ONEDNN_PACKED, ONEDNN_SOURCE, ONEDNN_WEIGHTS,
                            ONEDNN_DESTINATION, ONEDNN_BIAS},
        [LINEAR_BACKWARD_DATA] = {ONEDNN_BACKWARD_DATA, ONEDNN_PACKED, ONEDNN_DIFF_SOURCE,
                                  ONEDNN_WEIGHTS, ONEDNN_DIFF_DESTINATION, ONEDNN_BIAS},
        [LINEAR_BACKWARD_WEIGHTS] = {ONEDNN_BACKWARD_WEIGHTS, ONEDNN_REORDERED, ONEDNN_SOURCE,
                                     ONEDNN_DIFF_WEIGHTS, ONEDNN_DIFF_DESTINATION,
                                     ONEDNN_DIFF_BIAS},
    };
    const struct linear *s = work->shape;
    enum onednn_argument x = passes[s->pass].x, w = passes[s->pass].w, y = passes[s->pass].y;
    enum onednn_argument b = passes[s->pass].b;
    if (linear_has_epilogue(s) && s->fusion == LINEAR_SEPARATE)
        return error_set(error, STATUS_UNSUPPORTED,
                         "bias and activation are within the product, not after it");
    struct onednn_operation operation = {
        .kind = ONEDNN_LINEAR,
        .pass = passes[s->pass].pass,
        .function = functions[s->activation],
    };
    operation.tensors[x] = onednn_matrix(s->precision, ONEDNN_PLAIN, s->batch, s->inputs);
    operation.tensors[w] =
        onednn_matrix(s->precision, passes[s->pass].weights, s->outputs, s->inputs);
    operation.tensors[y] = onednn_matrix(s->precision, ONEDNN_PLAIN, s->batch, s->outputs);
    if (s->bias && s->pass != LINEAR_BACKWARD_DATA)
        operation.tensors[b] = onednn_vector(s->precision, s->outputs);
    const struct onednn_roles roles = {.inputs = {x, w, y, b}, .results = {x, w, y, b}};
    return onednn_plan_operation(work, &operation, &roles, error);
}
#endif

const struct cpu_workload linear_routines = {
    CPU_WORKLOAD(linear),
    .routines =
        {
#ifdef ROOFSWEEP_ONEDNN
            {.implementation = "onednn", ONEDNN_ROUTINE(onednn_plan)},
#endif
            {.implementation = "plain",
             .algorithm = "triple-loop",
             .plan = plain_plan,
             .region = {"linear_plain", layer_fp32, layer_fp64}},
        },
};
#endif
