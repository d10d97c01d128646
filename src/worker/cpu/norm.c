/* Norms on the CPU. Threads share out rows. Sums over rows are each thread's own until the end; they lie in
 * scratch, and so do the moments that a pass is given, which are computed before it is timed. */
#include "worker/cpu/norm.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "model/workloads/norm.h"

/* Arrays of one configuration, in its precision. */
struct norm_job {
    struct norm shape;
    const void *x, *dy, *gamma, *beta;
    void *y, *dx, *dgamma, *dbeta;
    void *kept_mean, *kept_inverse; /* results of a training pass */
    void *sums;                     /* [threads][2][columns] */
    void *mean, *inverse;           /* given */
};

#define REAL_BITS 32
#define REAL_ROOT sqrtf
#include "worker/cpu/norm_real.h"
#undef REAL_BITS
#undef REAL_ROOT
#define REAL_BITS 64
#define REAL_ROOT sqrt
#include "worker/cpu/norm_real.h"
#undef REAL_BITS
#undef REAL_ROOT

typedef void norm_loop(const struct norm_job *job);

/* By operation and pass; fp32, fp64. */
static const struct {
    const char *region;
    norm_loop *loops[2];
} passes[2][3] = {
    [NORM_BATCH] = {{"batch_norm_forward", {batch_forward_fp32, batch_forward_fp64}},
                    {"batch_norm_training", {batch_training_fp32, batch_training_fp64}},
                    {"batch_norm_backward", {batch_backward_fp32, batch_backward_fp64}}},
    [NORM_LAYER] = {{"layer_norm_forward", {layer_inference_fp32, layer_inference_fp64}},
                    {"layer_norm_training", {layer_training_fp32, layer_training_fp64}},
                    {"layer_norm_backward", {layer_backward_fp32, layer_backward_fp64}}},
};
static norm_loop *const before[2][2] = {
    [NORM_BATCH] = {batch_before_fp32, batch_before_fp64},
    [NORM_LAYER] = {layer_before_fp32, layer_before_fp64},
};

struct norm_plan {
    struct norm shape;
    int64_t sums; /* elements of scratch before the moments */
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static enum status norm_plan(struct work *work, const struct topology *topology,
                             struct error *error)
{
    (void)error;
    struct norm s = norm_from(&work->config);
    struct norm_plan *plan = work->plan;
    bool backward = s.pass == NORM_BACKWARD, training = s.pass == NORM_TRAINING;
    *plan = (struct norm_plan){s, 2 * s.columns * topology->cores};
    work->size[TENSOR_INPUT] = work->size[TENSOR_OUTPUT] = s.rows * s.columns;
    work->size[TENSOR_WEIGHT] = work->size[TENSOR_BIAS] =
        training ? larger(s.columns, norm_statistics(&s)) : s.columns;
    work->reads[TENSOR_INPUT] = work->reads[TENSOR_WEIGHT] = true;
    work->reads[TENSOR_BIAS] = !backward;
    work->reads[TENSOR_OUTPUT] = work->writes[TENSOR_INPUT] = backward;
    work->writes[TENSOR_OUTPUT] = !backward;
    work->writes[TENSOR_WEIGHT] = work->writes[TENSOR_BIAS] = backward || training;
    work->scratch_size = (size_t)(plan->sums + 2 * norm_statistics(&s)) * work->element;
    return STATUS_OK;
}

static struct norm_job job_of(const struct work *work)
{
    const struct norm_plan *plan = work->plan;
    char *moments = (char *)work->scratch + (size_t)plan->sums * work->element;
    return (struct norm_job){
        .shape = plan->shape,
        .x = work->input[TENSOR_INPUT],
        .dy = work->input[TENSOR_OUTPUT],
        .gamma = work->input[TENSOR_WEIGHT],
        .beta = work->input[TENSOR_BIAS],
        .y = work->result[TENSOR_OUTPUT],
        .dx = work->result[TENSOR_INPUT],
        .dgamma = work->result[TENSOR_WEIGHT],
        .dbeta = work->result[TENSOR_BIAS],
        .kept_mean = work->result[TENSOR_WEIGHT],
        .kept_inverse = work->result[TENSOR_BIAS],
        .sums = work->scratch,
        .mean = moments,
        .inverse = moments + (size_t)norm_statistics(&plan->shape) * work->element,
    };
}

static void norm_before(struct work *work)
{
    const struct norm_job job = job_of(work);
    before[job.shape.operation][work->precision == PRECISION_FP64](&job);
}

static void norm_run(struct work *work, struct trace *trace)
{
    const struct norm_job job = job_of(work);
    double begin = trace_begin(trace);
    passes[job.shape.operation][job.shape.pass].loops[work->precision == PRECISION_FP64](&job);
    trace_end(trace, passes[job.shape.operation][job.shape.pass].region, begin);
}

const struct routine norm_plain = {
    .workload = &norm_workload,
    .implementation = "plain",
    .algorithm = "loop",
    .plan_size = sizeof(struct norm_plan),
    .plan = norm_plan,
    .before = norm_before,
    .run = norm_run,
};
