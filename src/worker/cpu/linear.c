/* A fully connected layer on the CPU: by oneDNN, which applies bias and activation within the
 * product, and by CBLAS or three nested loops, with bias and activation after the product. */
#include <math.h>
#include <string.h>

#include "model/workloads/linear.h"
#include "worker/cpu/blas.h"
#include "worker/cpu/onednn.h"
#include "worker/cpu/routine.h"

#ifdef REAL
#include "worker/cpu/functions_real.h"

/* Computes the product, with one sum for each element. */
static void NAME(multiply)(const struct product *p)
{
    const REAL *a = p->a.data, *b = p->b.data;
    REAL *c = p->c;
    int64_t a_row = p->a.transposed ? 1 : p->a.leading, a_step = p->a.transposed ? p->a.leading : 1;
    int64_t b_column = p->b.transposed ? p->b.leading : 1;
    int64_t b_step = p->b.transposed ? 1 : p->b.leading;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t i = 0; i < p->m; ++i)
        for (int64_t j = 0; j < p->n; ++j) {
            REAL sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t q = 0; q < p->k; ++q)
                sum += a[i * a_row + q * a_step] * b[j * b_column + q * b_step];
            c[i * p->c_leading + j] = sum;
        }
}

/* Applies bias and activation to all of y. */
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

/* Adds rows of dy to db, so that loads are contiguous. */
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
    const struct product product = product_of(work);
    if (work->routine->by_name)
        NAME(multiply)(&product);
    else
#pragma omp parallel
        blas_multiply_shared(&product);
    if (s->pass == LINEAR_FORWARD && linear_has_epilogue(s))
        NAME(finish)(work);
    if (work->writes[TENSOR_BIAS])
        NAME(bias_gradient)(work);
}

#else

/* By pass: the factors and the result of the product. */
static const struct {
    enum tensor a, b, c;
    bool a_transposed, b_transposed;
} products[] = {
    [LINEAR_FORWARD] = {TENSOR_INPUT, TENSOR_WEIGHT, TENSOR_OUTPUT, false, true},
    [LINEAR_BACKWARD_DATA] = {TENSOR_OUTPUT, TENSOR_WEIGHT, TENSOR_INPUT, false, false},
    [LINEAR_BACKWARD_WEIGHTS] = {TENSOR_OUTPUT, TENSOR_INPUT, TENSOR_WEIGHT, true, false},
};

static struct product product_of(const struct work *work)
{
    const struct linear *s = work->shape;
    const int64_t columns[] = {
        [TENSOR_INPUT] = s->inputs, [TENSOR_WEIGHT] = s->inputs, [TENSOR_OUTPUT] = s->outputs};
    enum tensor a = products[s->pass].a, b = products[s->pass].b, c = products[s->pass].c;
    return (struct product){
        .wide = work->precision == PRECISION_FP64,
        .m = s->pass == LINEAR_BACKWARD_WEIGHTS ? s->outputs : s->batch,
        .n = columns[c],
        .k = s->pass == LINEAR_FORWARD         ? s->inputs
             : s->pass == LINEAR_BACKWARD_DATA ? s->outputs
                                               : s->batch,
        .a = {work->input[a], columns[a], products[s->pass].a_transposed},
        .b = {work->input[b], columns[b], products[s->pass].b_transposed},
        .c = work->result[c],
        .c_leading = columns[c],
    };
}

#define REAL_TEMPLATE "worker/cpu/linear.c"
#include "worker/cpu/real.h"

CPU_SHAPE(linear)

static enum status plain_plan(struct work *work, struct error *error)
{
    if (((const struct linear *)work->shape)->fusion == LINEAR_FUSED)
        return error_set(
            error, STATUS_UNSUPPORTED,
            "with CBLAS bias and activation come after the product; fusion=fused needs "
            "a library that does them within it");
    return STATUS_OK;
}

static enum status cblas_plan(struct work *work, struct error *error)
{
    const struct linear *s = work->shape;
    const int64_t extents[] = {s->batch, s->inputs, s->outputs};
    enum status status = plain_plan(work, error);
    return status ? status : blas_check(extents, sizeof extents / sizeof *extents, error);
}

#ifdef ROOFSWEEP_ONEDNN
/* Weights are packed before the timed run for forward and backward-data. Their gradient is
 * reordered to the user's layout within the timed run. */
static enum status onednn_plan(struct work *work, struct error *error)
{
    static const enum onednn_function functions[LINEAR_ACTIVATIONS] = {
        [LINEAR_NONE] = ONEDNN_IDENTITY,
        [LINEAR_RELU] = ONEDNN_RELU,
        [LINEAR_GELU] = ONEDNN_GELU,
    };
    /* By pass: the library's arguments for x, W, y and b. */
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
            {.implementation = "cblas",
             .algorithm = "gemm",
             .plan = cblas_plan,
             .region = {"linear_cblas", layer_fp32, layer_fp64}},
            {.implementation = "plain",
             .algorithm = "triple-loop",
             .by_name = true,
             .plan = plain_plan,
             .region = {"linear_plain", layer_fp32, layer_fp64}},
        },
};
#endif
