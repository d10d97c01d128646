/* A matrix product on the CPU: by oneDNN, and as three nested loops. */
#include "model/workloads/matmul.h"
#include "worker/cpu/onednn.h"
#include "worker/cpu/routine.h"

#ifdef REAL

/* Adds up rows of w, so that loads are contiguous. */
static void NAME(plain)(const struct work *work)
{
    const struct matmul *s = work->shape;
    const REAL *x = work->input[TENSOR_INPUT], *w = work->input[TENSOR_WEIGHT];
    REAL *y = work->result[TENSOR_OUTPUT];
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->m; ++i) {
        REAL *row = y + i * s->n;
        for (int64_t j = 0; j < s->n; ++j)
            row[j] = 0;
        for (int64_t p = 0; p < s->k; ++p) {
            const REAL factor = x[i * s->k + p], *other = w + p * s->n;
#pragma omp simd
            for (int64_t j = 0; j < s->n; ++j)
                row[j] += factor * other[j];
        }
    }
}

#else
#define REAL_TEMPLATE "worker/cpu/matmul.c"
#include "worker/cpu/real.h"

CPU_SHAPE(matmul)

#ifdef ROOFSWEEP_ONEDNN
/* Neither matrix is packed before the timed product. */
static enum status onednn_plan(struct work *work, struct error *error)
{
    static const struct onednn_roles roles = {
        .inputs = {[TENSOR_INPUT] = ONEDNN_SOURCE, [TENSOR_WEIGHT] = ONEDNN_WEIGHTS},
        .results = {[TENSOR_OUTPUT] = ONEDNN_DESTINATION},
    };
    const struct matmul *s = work->shape;
    const struct onednn_operation operation = {
        .kind = ONEDNN_MATMUL,
        .tensors = {[ONEDNN_SOURCE] = onednn_matrix(s->precision, ONEDNN_PLAIN, s->m, s->k),
                    [ONEDNN_WEIGHTS] = onednn_matrix(s->precision, ONEDNN_PLAIN, s->k, s->n),
                    [ONEDNN_DESTINATION] = onednn_matrix(s->precision, ONEDNN_PLAIN, s->m, s->n)},
    };
    return onednn_plan_operation(work, &operation, &roles, error);
}
#endif

const struct cpu_workload matmul_routines = {
    CPU_WORKLOAD(matmul),
    .routines =
        {
#ifdef ROOFSWEEP_ONEDNN
            {.implementation = "onednn", ONEDNN_ROUTINE(onednn_plan)},
#endif
            {.implementation = "plain",
             .algorithm = "triple-loop",
             .region = {"matmul_plain", plain_fp32, plain_fp64}},
        },
};
#endif
