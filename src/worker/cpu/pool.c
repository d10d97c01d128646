/* Pools on the CPU. Each thread has lines of the output. The innermost loop goes along what lies beside
 * each other: channels of a pixel, or pixels of a line. */
#include "worker/cpu/pool.h"

#include <math.h>

#include "model/workloads/pool.h"

#define REAL_BITS 32
#include "worker/cpu/pool_real.h"
#undef REAL_BITS
#define REAL_BITS 64
#include "worker/cpu/pool_real.h"
#undef REAL_BITS

void pool_tensors(struct work *work, const struct pool *s)
{
    work->size[TENSOR_INPUT] = pool_x_size(s);
    work->size[TENSOR_OUTPUT] = pool_y_size(s);
    work->reads[TENSOR_INPUT] = work->writes[TENSOR_OUTPUT] = true;
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
    const struct pool *s = work->plan;
    double begin = trace_begin(trace);
    loops[s->layout][work->precision == PRECISION_FP64](work);
    trace_end(trace, s->operation == POOL_MAX ? "pool_max" : "pool_average", begin);
}

const struct routine pool_plain = {
    .workload = &pool_workload,
    .implementation = "plain",
    .algorithm = "loop",
    .plan_size = sizeof(struct pool),
    .plan = pool_plan,
    .run = pool_run,
};
