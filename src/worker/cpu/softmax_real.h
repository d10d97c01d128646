/* Softmax in one precision: a template, see real.h. Written for softmax.c. */
#include "worker/cpu/functions_real.h"

/* The row of y takes the exponentials, and is scaled once their sum is known. Differences beyond 80 are
 * taken for 80: what is that small does not show beside the largest, which is 1. */
static void NAME(row_forward)(int64_t columns, const REAL *restrict x, REAL *restrict y)
{
    REAL largest = x[0], sum = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < columns; ++i)
        largest = x[i] > largest ? x[i] : largest;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < columns; ++i) {
        REAL difference = x[i] - largest;
        y[i] = NAME(exponential)(difference < -80 ? -80 : difference);
        sum += y[i];
    }
    REAL share = 1 / sum;
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i)
        y[i] *= share;
}

static void NAME(row_backward)(int64_t columns, const REAL *restrict y, const REAL *restrict dy,
                               REAL *restrict dx)
{
    REAL sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < columns; ++i)
        sum += y[i] * dy[i];
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i)
        dx[i] = y[i] * (dy[i] - sum);
}

static void NAME(forward)(const struct work *work)
{
    const struct softmax *s = work->plan;
    const REAL *x = work->input[TENSOR_INPUT];
    REAL *y = work->result[TENSOR_OUTPUT];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < s->rows; ++row)
        NAME(row_forward)(s->columns, x + row * s->columns, y + row * s->columns);
}

static void NAME(backward)(const struct work *work)
{
    const struct softmax *s = work->plan;
    const REAL *y = work->input[TENSOR_INPUT], *dy = work->input[TENSOR_OUTPUT];
    REAL *dx = work->result[TENSOR_INPUT];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < s->rows; ++row)
        NAME(row_backward)
    (s->columns, y + row * s->columns, dy + row * s->columns, dx + row * s->columns);
}
