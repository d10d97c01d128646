/* Pools on the CPU. Each thread has lines of the output. The innermost loop goes along what lies beside
 * each other: channels of a pixel, or pixels of a line. */
#include "worker/cpu/pool.h"

#include <math.h>
#include <string.h>

#include "model/workloads/pool.h"

enum { POOL_CHANNELS = 64 }; /* that a thread spreads gradients of at a time */

#define REAL_BITS 32
#include "worker/cpu/pool_real.h"
#undef REAL_BITS
#define REAL_BITS 64
#include "worker/cpu/pool_real.h"
#undef REAL_BITS

void pool_tensors(struct work *work, const struct pool *s)
{
    bool forward = s->pass == POOL_FORWARD;
    work->size[TENSOR_INPUT] = pool_x_size(s);
    work->size[TENSOR_OUTPUT] = pool_y_size(s);
    work->reads[TENSOR_INPUT] = forward || s->operation == POOL_MAX;
    work->writes[TENSOR_OUTPUT] = forward;
    work->reads[TENSOR_OUTPUT] = work->writes[TENSOR_INPUT] = !forward;
}

static enum status pool_plan(struct work *work, const struct topology *topology,
                             struct error *error)
{
    (void)topology;
    (void)error;
    struct pool *s = work->plan;
    *s = pool_from(&work->config);
    pool_tensors(work, s);
    return STATUS_OK;
}

static void pool_run(struct work *work, struct trace *trace)
{
    static void (*const loops[2][2])(const struct work *work) = {
        [LAYOUT_NHWC] = {pool_nhwc_fp32, pool_nhwc_fp64},
        [LAYOUT_NCHW] = {pool_nchw_fp32, pool_nchw_fp64},
    };
    static void (*const gradients[2])(const struct work *work) = {pool_gradient_fp32,
                                                                  pool_gradient_fp64};
    static const char *const regions[2][POOL_OPERATIONS] = {
        [POOL_FORWARD] = {"pool_max", "pool_average"},
        [POOL_BACKWARD] = {"pool_max_backward", "pool_average_backward"},
    };
    const struct pool *s = work->plan;
    bool wide = work->precision == PRECISION_FP64;
    double begin = trace_begin(trace);
    (s->pass == POOL_FORWARD ? loops[s->layout][wide] : gradients[wide])(work);
    trace_end(trace, regions[s->pass][s->operation], begin);
}

const struct routine pool_plain = {
    .workload = &pool_workload,
    .implementation = "plain",
    .algorithm = "loop",
    .plan_size = sizeof(struct pool),
    .plan = pool_plan,
    .run = pool_run,
};
