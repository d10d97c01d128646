/* The longer edge of the product is divided among the threads. Each thread calls single-threaded BLAS
 * for its own part, so that a BLAS with threads of its own never puts a second set on the cores. */
#include "worker/cpu/matmul.h"

#include <omp.h>

#include "model/workloads/matmul.h"
#include "worker/cpu/blas.h"

enum status matmul_offered(const struct matmul *s, struct error *error)
{
    if (s->sparse)
        return error_set(error, STATUS_UNSUPPORTED, "sparsity=2:4 needs the tensor units of a GPU");
    return STATUS_OK;
}

void matmul_tensors(struct work *work, const struct matmul *s)
{
    work->size[TENSOR_INPUT] = s->m * s->k;
    work->size[TENSOR_WEIGHT] = s->k * s->n;
    work->size[TENSOR_OUTPUT] = s->m * s->n;
    work->reads[TENSOR_INPUT] = work->reads[TENSOR_WEIGHT] = true;
    work->writes[TENSOR_OUTPUT] = true;
}

#define REAL_BITS 32
#include "worker/cpu/matmul_real.h"
#undef REAL_BITS
#define REAL_BITS 64
#include "worker/cpu/matmul_real.h"
#undef REAL_BITS

static enum status cblas_plan(struct work *work, const struct topology *topology,
                              struct error *error)
{
    struct matmul s = matmul_from(&work->config);
    const int64_t extents[] = {s.m, s.n, s.k};
    (void)topology;
    *(struct matmul *)work->plan = s;
    matmul_tensors(work, &s);
    enum status status = matmul_offered(&s, error);
    return status ? status : blas_check(extents, sizeof extents / sizeof *extents, error);
}

static void cblas_run(struct work *work, struct trace *trace)
{
    double begin = trace_begin(trace);
    (work->precision == PRECISION_FP64 ? multiply_fp64 : multiply_fp32)(work);
    trace_end(trace, "matmul_cblas", begin);
}

const struct routine matmul_cblas = {
    .workload = &matmul_workload,
    .implementation = "cblas",
    .algorithm = "gemm",
    .plan_size = sizeof(struct matmul),
    .plan = cblas_plan,
    .run = cblas_run,
};

static enum status plain_plan(struct work *work, const struct topology *topology,
                              struct error *error)
{
    (void)topology;
    struct matmul *s = work->plan;
    *s = matmul_from(&work->config);
    matmul_tensors(work, s);
    return matmul_offered(s, error);
}

static void plain_run(struct work *work, struct trace *trace)
{
    double begin = trace_begin(trace);
    (work->precision == PRECISION_FP64 ? plain_fp64 : plain_fp32)(work);
    trace_end(trace, "matmul_plain", begin);
}

const struct routine matmul_plain = {
    .workload = &matmul_workload,
    .implementation = "plain",
    .algorithm = "triple-loop",
    .by_name = true,
    .plan_size = sizeof(struct matmul),
    .plan = plain_plan,
    .run = plain_run,
};
