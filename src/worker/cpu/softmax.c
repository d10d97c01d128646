/* Softmax on the CPU: each thread has rows of its own. */
#include "worker/cpu/softmax.h"

#include <math.h>
#include <string.h>

#include "model/workloads/softmax.h"

#define REAL_BITS 32
#include "worker/cpu/softmax_real.h"
#undef REAL_BITS
#define REAL_BITS 64
#include "worker/cpu/softmax_real.h"
#undef REAL_BITS

void softmax_tensors(struct work *work, const struct softmax *s)
{
    bool forward = s->pass == SOFTMAX_FORWARD;
    work->size[TENSOR_INPUT] = work->size[TENSOR_OUTPUT] = s->rows * s->columns;
    work->reads[TENSOR_INPUT] = true;
    work->reads[TENSOR_OUTPUT] = work->writes[TENSOR_INPUT] = !forward;
    work->writes[TENSOR_OUTPUT] = forward;
}

static enum status softmax_plan(struct work *work, const struct topology *topology,
                                struct error *error)
{
    (void)topology;
    (void)error;
    struct softmax *s = work->plan;
    *s = softmax_from(&work->config);
    softmax_tensors(work, s);
    return STATUS_OK;
}

/* fp32, fp64 */
static const struct {
    const char *region;
    void (*loops[2])(const struct work *work);
} passes[] = {
    [SOFTMAX_FORWARD] = {"softmax_forward", {forward_fp32, forward_fp64}},
    [SOFTMAX_BACKWARD] = {"softmax_backward", {backward_fp32, backward_fp64}},
};

static void softmax_run(struct work *work, struct trace *trace)
{
    const struct softmax *s = work->plan;
    double begin = trace_begin(trace);
    passes[s->pass].loops[work->precision == PRECISION_FP64](work);
    trace_end(trace, passes[s->pass].region, begin);
}

const struct routine softmax_plain = {
    .workload = &softmax_workload,
    .implementation = "plain",
    .algorithm = "loop",
    .plan_size = sizeof(struct softmax),
    .plan = softmax_plan,
    .run = softmax_run,
};
