/* Norms in one precision: a template, see real.h. Written for norm.c, which explains it. */
#include "worker/cpu/real.h"

/* ---- layer ---- */

static void NAME(row_moments)(int64_t columns, const REAL *restrict x, REAL *mean, REAL *inverse)
{
    REAL sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < columns; ++i)
        sum += x[i];
    REAL middle = sum / (REAL)columns;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < columns; ++i)
        squares += (x[i] - middle) * (x[i] - middle);
    *mean = middle;
    *inverse = 1 / REAL_ROOT(squares / (REAL)columns + (REAL)NORM_EPSILON);
}

static void NAME(row_apply)(int64_t columns, REAL mean, REAL inverse, const REAL *restrict x,
                            const REAL *restrict gamma, const REAL *restrict beta, REAL *restrict y)
{
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i)
        y[i] = (x[i] - mean) * inverse * gamma[i] + beta[i];
}

/* kept: where the moments go; NULL: nowhere. */
static void NAME(layer_forward)(const struct norm_job *job, REAL *kept_mean, REAL *kept_inverse)
{
    const REAL *x = job->x, *gamma = job->gamma, *beta = job->beta;
    int64_t columns = job->shape.columns;
    REAL *y = job->y;
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < job->shape.rows; ++row) {
        REAL mean, inverse;
        NAME(row_moments)(columns, x + row * columns, &mean, &inverse);
        if (y)
            NAME(row_apply)
        (columns, mean, inverse, x + row * columns, gamma, beta, y + row * columns);
        if (kept_mean) {
            kept_mean[row] = mean;
            kept_inverse[row] = inverse;
        }
    }
}

/* Of one row; dgamma and dbeta are the thread's own sums. */
static void NAME(row_backward)(int64_t columns, REAL mean, REAL inverse, const REAL *restrict x,
                               const REAL *restrict dy, const REAL *restrict gamma,
                               REAL *restrict dx, REAL *restrict dgamma, REAL *restrict dbeta)
{
    REAL sum = 0, products = 0;
#pragma omp simd reduction(+ : sum, products)
    for (int64_t i = 0; i < columns; ++i) {
        REAL h = (x[i] - mean) * inverse;
        sum += dy[i] * gamma[i];
        products += dy[i] * gamma[i] * h;
        dgamma[i] += dy[i] * h;
        dbeta[i] += dy[i];
    }
    sum /= (REAL)columns;
    products /= (REAL)columns;
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i)
        dx[i] = inverse * (dy[i] * gamma[i] - sum - (x[i] - mean) * inverse * products);
}

/* ---- sums over rows: each thread has sums of its own, which are added up at the end ---- */

/* Sums of thread 0 become those of all; called by the whole team. */
static void NAME(sums_unite)(const struct norm_job *job)
{
    REAL *all = job->sums;
    int64_t count = 2 * job->shape.columns;
    int threads = omp_get_num_threads();
#pragma omp barrier
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count; ++i)
        for (int thread = 1; thread < threads; ++thread)
            all[i] += all[thread * count + i];
}

static REAL *NAME(sums_begin)(const struct norm_job *job)
{
    REAL *own = (REAL *)job->sums + 2 * job->shape.columns * omp_get_thread_num();
    memset(own, 0, 2 * (size_t)job->shape.columns * sizeof *own);
    return own;
}

static void NAME(layer_backward)(const struct norm_job *job)
{
    const REAL *x = job->x, *dy = job->dy, *gamma = job->gamma;
    const REAL *mean = job->mean, *inverse = job->inverse;
    REAL *dx = job->dx, *dgamma = job->dgamma, *dbeta = job->dbeta;
    const REAL *sums = job->sums;
    int64_t columns = job->shape.columns;
#pragma omp parallel
    {
        REAL *own = NAME(sums_begin)(job);
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < job->shape.rows; ++row)
            NAME(row_backward)
        (columns, mean[row], inverse[row], x + row * columns, dy + row * columns, gamma,
         dx + row * columns, own, own + columns);
        NAME(sums_unite)(job);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < columns; ++i) {
            dgamma[i] = sums[i];
            dbeta[i] = sums[columns + i];
        }
    }
}

/* ---- batch ---- */

/* Sums are of differences from the first row, so that a large mean takes nothing from the variance. */
static void NAME(batch_moments)(const struct norm_job *job, REAL *mean, REAL *inverse)
{
    const REAL *x = job->x, *sums = job->sums;
    int64_t columns = job->shape.columns;
    REAL n = (REAL)job->shape.rows;
#pragma omp parallel
    {
        REAL *own = NAME(sums_begin)(job);
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < job->shape.rows; ++row)
#pragma omp simd
            for (int64_t i = 0; i < columns; ++i) {
                REAL difference = x[row * columns + i] - x[i];
                own[i] += difference;
                own[columns + i] += difference * difference;
            }
        NAME(sums_unite)(job);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < columns; ++i) {
            REAL middle = sums[i] / n;
            mean[i] = x[i] + middle;
            inverse[i] =
                1 / REAL_ROOT(sums[columns + i] / n - middle * middle + (REAL)NORM_EPSILON);
        }
    }
}

static void NAME(batch_apply)(const struct norm_job *job, const REAL *mean, const REAL *inverse)
{
    const REAL *x = job->x, *gamma = job->gamma, *beta = job->beta;
    int64_t columns = job->shape.columns;
    REAL *y = job->y;
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < job->shape.rows; ++row)
#pragma omp simd
        for (int64_t i = 0; i < columns; ++i)
            y[row * columns + i] =
                (x[row * columns + i] - mean[i]) * inverse[i] * gamma[i] + beta[i];
}

static void NAME(batch_backward)(const struct norm_job *job)
{
    const REAL *x = job->x, *dy = job->dy, *gamma = job->gamma;
    const REAL *mean = job->mean, *inverse = job->inverse, *sums = job->sums;
    REAL *dx = job->dx, *dgamma = job->dgamma, *dbeta = job->dbeta;
    int64_t columns = job->shape.columns;
    REAL n = (REAL)job->shape.rows;
#pragma omp parallel
    {
        REAL *own = NAME(sums_begin)(job);
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < job->shape.rows; ++row)
#pragma omp simd
            for (int64_t i = 0; i < columns; ++i) {
                REAL d = dy[row * columns + i];
                own[i] += d * (x[row * columns + i] - mean[i]) * inverse[i];
                own[columns + i] += d;
            }
        NAME(sums_unite)(job);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < columns; ++i) {
            dgamma[i] = sums[i];
            dbeta[i] = sums[columns + i];
        }
#pragma omp for schedule(static)
        for (int64_t row = 0; row < job->shape.rows; ++row)
#pragma omp simd
            for (int64_t i = 0; i < columns; ++i) {
                REAL h = (x[row * columns + i] - mean[i]) * inverse[i];
                dx[row * columns + i] =
                    gamma[i] * inverse[i] *
                    (dy[row * columns + i] - sums[columns + i] / n - h * sums[i] / n);
            }
    }
}

/* ---- passes ---- */

static void NAME(batch_before)(const struct norm_job *job)
{
    NAME(batch_moments)(job, job->mean, job->inverse);
}

static void NAME(layer_before)(const struct norm_job *job)
{
    struct norm_job moments_alone = *job;
    moments_alone.y = NULL;
    NAME(layer_forward)(&moments_alone, job->mean, job->inverse);
}

static void NAME(batch_forward)(const struct norm_job *job)
{
    NAME(batch_apply)(job, job->mean, job->inverse);
}

static void NAME(batch_training)(const struct norm_job *job)
{
    NAME(batch_moments)(job, job->kept_mean, job->kept_inverse);
    NAME(batch_apply)(job, job->kept_mean, job->kept_inverse);
}

static void NAME(layer_inference)(const struct norm_job *job)
{
    NAME(layer_forward)(job, NULL, NULL);
}

static void NAME(layer_training)(const struct norm_job *job)
{
    NAME(layer_forward)(job, job->kept_mean, job->kept_inverse);
}
