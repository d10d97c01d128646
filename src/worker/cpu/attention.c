/* Attention by CBLAS: for a block of queries of one head the scores, their softmax, and the product with
 * the values. The blocks are divided among the threads, each with scratch for the scores of one. Each
 * thread calls single-threaded BLAS. */
#include "worker/cpu/attention.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "model/workloads/attention.h"
#include "worker/cpu/blas.h"

struct attention_plan {
    struct attention shape;
    int64_t block;  /* queries */
    int64_t blocks; /* of a head */
};

#define REAL_BITS 32
#include "worker/cpu/attention_real.h"
#undef REAL_BITS
#define REAL_BITS 64
#include "worker/cpu/attention_real.h"
#undef REAL_BITS

void attention_tensors(struct work *work, const struct attention *s)
{
    for (int i = 0; i < TENSOR_COUNT; ++i)
        work->size[i] = attention_size(s, (enum tensor)i);
    work->reads[TENSOR_INPUT] = work->reads[TENSOR_WEIGHT] = work->reads[TENSOR_VALUE] = true;
    work->writes[TENSOR_OUTPUT] = true;
}

static enum status cblas_plan(struct work *work, const struct topology *topology,
                              struct error *error)
{
    const int64_t block = 64;
    struct attention_plan *plan = work->plan;
    struct attention s = attention_from(&work->config);
    const int64_t extents[] = {s.sequence, s.keys, s.head_size};
    plan->shape = s;
    plan->block = s.sequence < block ? s.sequence : block;
    plan->blocks = (s.sequence + plan->block - 1) / plan->block;
    attention_tensors(work, &s);
    work->scratch_size = (size_t)(topology->cores * plan->block * s.keys) * work->element;
    return blas_check(extents, sizeof extents / sizeof *extents, error);
}

static void cblas_run(struct work *work, struct trace *trace)
{
    double begin = trace_begin(trace);
    (work->precision == PRECISION_FP64 ? attend_fp64 : attend_fp32)(work);
    trace_end(trace, "attention_cblas", begin);
}

const struct routine attention_cblas = {
    .workload = &attention_workload,
    .implementation = "cblas",
    .algorithm = "blocks-of-queries",
    .plan_size = sizeof(struct attention_plan),
    .plan = cblas_plan,
    .run = cblas_run,
};
