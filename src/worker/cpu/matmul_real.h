/* A matrix product in one precision: a template, see real.h. Written for matmul.c, which explains
 * it. */
#include "worker/cpu/real.h"

static void NAME(multiply)(const struct work *work)
{
    const struct matmul *s = work->plan;
    const REAL *x = work->input[TENSOR_INPUT], *w = work->input[TENSOR_WEIGHT];
    REAL *y = work->result[TENSOR_OUTPUT];
    bool rows = s->m >= s->n;
#pragma omp parallel
    {
        int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        int64_t extent = rows ? s->m : s->n;
        int64_t begin = share_begin(extent, thread, threads);
        int64_t count = share_begin(extent, thread + 1, threads) - begin;
        int64_t row = rows ? begin : 0, column = rows ? 0 : begin;
        if (count > 0)
            REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)(rows ? count : s->m),
                      (int)(rows ? s->n : count), (int)s->k, 1, x + row * s->k, (int)s->k,
                      w + column, (int)s->n, 0, y + row * s->n + column, (int)s->n);
    }
}

/* Rows of w, so that the innermost loop goes through memory in order. */
static void NAME(plain)(const struct work *work)
{
    const struct matmul *s = work->plan;
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
