/* Elementwise work on the CPU: a parallel loop for each operation, which the compiler makes vector code
 * of. */
#include "worker/cpu/elementwise.h"

#include <math.h>
#include <string.h>

#include "model/workloads/elementwise.h"

#define REAL_BITS 32
#include "worker/cpu/elementwise_real.h"
#undef REAL_BITS
#define REAL_BITS 64
#include "worker/cpu/elementwise_real.h"
#undef REAL_BITS

/* fp32, fp64 */
static const struct {
    const char *region;
    void (*loops[2])(const struct work *work);
} operations[ELEMENTWISE_OPERATIONS] = {
    [ELEMENTWISE_RELU] = {"elementwise_relu", {relu_fp32, relu_fp64}},
    [ELEMENTWISE_SIGMOID] = {"elementwise_sigmoid", {sigmoids_fp32, sigmoids_fp64}},
    [ELEMENTWISE_TANH] = {"elementwise_tanh", {tangents_fp32, tangents_fp64}},
    [ELEMENTWISE_ADD] = {"elementwise_add", {add_fp32, add_fp64}},
    [ELEMENTWISE_SCALE] = {"elementwise_scale", {scale_fp32, scale_fp64}},
};

void elementwise_tensors(struct work *work, const struct elementwise *s)
{
    work->size[TENSOR_INPUT] = work->size[TENSOR_OUTPUT] = s->elements;
    work->reads[TENSOR_INPUT] = work->writes[TENSOR_OUTPUT] = true;
    if (elementwise_inputs(s->operation) == 2) {
        work->size[TENSOR_WEIGHT] = s->elements;
        work->reads[TENSOR_WEIGHT] = true;
    }
}

static enum status elementwise_plan(struct work *work, const struct topology *topology,
                                    struct error *error)
{
    (void)topology;
    (void)error;
    struct elementwise *s = work->plan;
    *s = elementwise_from(&work->config);
    elementwise_tensors(work, s);
    return STATUS_OK;
}

static void elementwise_run(struct work *work, struct trace *trace)
{
    const struct elementwise *s = work->plan;
    double begin = trace_begin(trace);
    operations[s->operation].loops[work->precision == PRECISION_FP64](work);
    trace_end(trace, operations[s->operation].region, begin);
}

const struct routine elementwise_plain = {
    .workload = &elementwise_workload,
    .implementation = "plain",
    .algorithm = "loop",
    .plan_size = sizeof(struct elementwise),
    .plan = elementwise_plan,
    .run = elementwise_run,
};
