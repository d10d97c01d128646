/* A fully connected layer. The longer edge of the result is divided among the threads, as in matmul.c.
 * With CBLAS, each thread adds bias and activation to its own part behind the product. */
#include "worker/cpu/linear.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "model/workloads/linear.h"
#include "worker/cpu/blas.h"

/* The product of a pass, row-major: c [m][n] = a b with k products for each element. A transposed
 * factor is stored the other way round. */
struct linear_product {
    enum tensor a, b, c;
    bool a_transposed, b_transposed;
    int64_t m, n, k;
};

struct linear_plan {
    struct linear shape;
    struct linear_product product;
};

static struct linear_product product_of(const struct linear *s)
{
    const struct linear_product products[] = {
        [LINEAR_FORWARD] = {TENSOR_INPUT, TENSOR_WEIGHT, TENSOR_OUTPUT, false, true, s->batch,
                            s->outputs, s->inputs},
        [LINEAR_BACKWARD_DATA] = {TENSOR_OUTPUT, TENSOR_WEIGHT, TENSOR_INPUT, false, false,
                                  s->batch, s->inputs, s->outputs},
        [LINEAR_BACKWARD_WEIGHTS] = {TENSOR_OUTPUT, TENSOR_INPUT, TENSOR_WEIGHT, true, false,
                                     s->outputs, s->inputs, s->batch},
    };
    return products[s->pass];
}

#define REAL_BITS 32
#include "worker/cpu/linear_real.h"
#undef REAL_BITS
#define REAL_BITS 64
#include "worker/cpu/linear_real.h"
#undef REAL_BITS

void linear_tensors(struct work *work, const struct linear *s)
{
    struct linear_product product = product_of(s);
    for (int i = 0; i < TENSOR_COUNT; ++i)
        work->size[i] = linear_size(s, (enum tensor)i);
    work->reads[product.a] = work->reads[product.b] = true;
    work->writes[product.c] = true;
    work->reads[TENSOR_BIAS] = s->bias && s->pass == LINEAR_FORWARD;
    work->writes[TENSOR_BIAS] = s->bias && s->pass == LINEAR_BACKWARD_WEIGHTS;
}

static enum status plan_tensors(struct work *work, struct error *error)
{
    struct linear_plan *plan = work->plan;
    plan->shape = linear_from(&work->config);
    const struct linear *s = &plan->shape;
    plan->product = product_of(s);
    linear_tensors(work, s);
    if (s->fusion == LINEAR_FUSED)
        return error_set(
            error, STATUS_UNSUPPORTED,
            "with CBLAS bias and activation come behind the product; fusion=fused needs "
            "a library that does them within it");
    return STATUS_OK;
}

static enum status cblas_plan(struct work *work, const struct topology *topology,
                              struct error *error)
{
    const struct linear s = linear_from(&work->config);
    const int64_t extents[] = {s.batch, s.inputs, s.outputs};
    (void)topology;
    enum status status = plan_tensors(work, error);
    return status ? status : blas_check(extents, sizeof extents / sizeof *extents, error);
}

static enum status plain_plan(struct work *work, const struct topology *topology,
                              struct error *error)
{
    (void)topology;
    return plan_tensors(work, error);
}

static void cblas_run(struct work *work, struct trace *trace)
{
    double begin = trace_begin(trace);
    (work->precision == PRECISION_FP64 ? layer_fp64 : layer_fp32)(work, true);
    trace_end(trace, "linear_cblas", begin);
}

static void plain_run(struct work *work, struct trace *trace)
{
    double begin = trace_begin(trace);
    (work->precision == PRECISION_FP64 ? layer_fp64 : layer_fp32)(work, false);
    trace_end(trace, "linear_plain", begin);
}

const struct routine linear_cblas = {
    .workload = &linear_workload,
    .implementation = "cblas",
    .algorithm = "gemm",
    .plan_size = sizeof(struct linear_plan),
    .plan = cblas_plan,
    .run = cblas_run,
};

const struct routine linear_plain = {
    .workload = &linear_workload,
    .implementation = "plain",
    .algorithm = "triple-loop",
    .by_name = true,
    .plan_size = sizeof(struct linear_plan),
    .plan = plain_plan,
    .run = plain_run,
};
