/* Norms on the CPU. The threads divide the rows. Each thread has sums over its rows in scratch
 * memory, which are added at the end. Moments that a pass needs as inputs are computed before it is
 * timed. */
#include <omp.h>
#include <string.h>

#include "model/workloads/norm.h"
#include "worker/cpu/routine.h"

#ifdef REAL

struct NAME(job) {
    int64_t rows, columns;
    bool layer;
    const REAL *x, *dy, *gamma, *beta;
    REAL *y, *dx, *dgamma, *dbeta;
    double *sums; /* [threads][2][columns] */
    REAL *parts;  /* [threads][2][columns]: sums over less than SUM_ROWS rows, not yet in `sums` */
    REAL *mean, *inverse; /* of each row in a layer norm, of each column in a batch norm */
};

static void NAME(row_moments)(const struct NAME(job) * j, int64_t row)
{
    const REAL *x = j->x + row * j->columns;
    const int64_t columns = j->columns;
    double sum = 0, squares = 0;
    for (int64_t first = 0; first < columns; first = sum_end(first, columns)) {
        REAL part = 0;
#pragma omp simd reduction(+ : part)
        for (int64_t i = first; i < sum_end(first, columns); ++i)
            part += x[i];
        sum += (double)part;
    }
    const REAL middle = (REAL)(sum / (double)columns);
    for (int64_t first = 0; first < columns; first = sum_end(first, columns)) {
        REAL part = 0;
#pragma omp simd reduction(+ : part)
        for (int64_t i = first; i < sum_end(first, columns); ++i)
            part += (x[i] - middle) * (x[i] - middle);
        squares += (double)part;
    }
    j->mean[row] = middle;
    j->inverse[row] = 1 / REAL_ROOT((REAL)(squares / (double)columns) + (REAL)NORM_EPSILON);
}

static void NAME(row_apply)(const struct NAME(job) * j, int64_t row)
{
    const REAL *restrict x = j->x + row * j->columns, *gamma = j->gamma, *beta = j->beta;
    const REAL *mean = j->mean, *inverse = j->inverse;
    const REAL m = mean[j->layer ? row : 0], r = inverse[j->layer ? row : 0];
    REAL *restrict y = j->y + row * j->columns;
    if (j->layer)
#pragma omp simd
        for (int64_t i = 0; i < j->columns; ++i)
            y[i] = (x[i] - m) * r * gamma[i] + beta[i];
    else
#pragma omp simd
        for (int64_t i = 0; i < j->columns; ++i)
            y[i] = (x[i] - mean[i]) * inverse[i] * gamma[i] + beta[i];
}

/* After each SUM_ROWS rows, adds the thread's parts to its sums. */
static void NAME(rows_count)(const struct NAME(job) * j, int64_t rows)
{
    const int64_t count = 2 * j->columns, own = count * omp_get_thread_num();
    for (int64_t i = own; i < own + count && rows % SUM_ROWS == 0; ++i) {
        j->sums[i] += (double)j->parts[i];
        j->parts[i] = 0;
    }
}

static REAL *NAME(sums_begin)(const struct NAME(job) * j)
{
    const size_t count = 2 * (size_t)j->columns, own = count * (size_t)omp_get_thread_num();
    memset(j->sums + own, 0, count * sizeof *j->sums);
    return memset(j->parts + own, 0, count * sizeof *j->parts);
}

/* Adds up the sums of all threads. Called within a parallel region. */
static void NAME(sums_unite)(const struct NAME(job) * j)
{
    int64_t count = 2 * j->columns;
    int threads = omp_get_num_threads();
    NAME(rows_count)(j, 0);
#pragma omp barrier
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count; ++i)
        for (int thread = 1; thread < threads; ++thread)
            j->sums[i] += j->sums[thread * count + i];
}

/* Adds differences from the first row, so that the variance is accurate for a large mean. */
static void NAME(column_moments)(const struct NAME(job) * j)
{
    const double n = (double)j->rows;
    const int64_t columns = j->columns;
#pragma omp parallel
    {
        REAL *restrict own = NAME(sums_begin)(j);
        int64_t rows = 0;
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < j->rows; ++row) {
#pragma omp simd
            for (int64_t i = 0; i < columns; ++i) {
                REAL difference = j->x[row * columns + i] - j->x[i];
                own[i] += difference;
                own[columns + i] += difference * difference;
            }
            NAME(rows_count)(j, ++rows);
        }
        NAME(sums_unite)(j);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < columns; ++i) {
            double middle = j->sums[i] / n;
            double variance = j->sums[columns + i] / n - middle * middle;
            j->mean[i] = (REAL)((double)j->x[i] + middle);
            j->inverse[i] = 1 / REAL_ROOT((REAL)variance + (REAL)NORM_EPSILON);
        }
    }
}

static void NAME(moments)(const struct NAME(job) * j)
{
    if (!j->layer)
        NAME(column_moments)(j);
    else
#pragma omp parallel for schedule(static)
        for (int64_t row = 0; row < j->rows; ++row)
            NAME(row_moments)(j, row);
}

/* A layer norm's moments are computed for each row while the row is in the cache. */
static void NAME(forward)(const struct NAME(job) * j)
{
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < j->rows; ++row) {
        if (j->layer)
            NAME(row_moments)(j, row);
        NAME(row_apply)(j, row);
    }
}

/* Sets dx of a layer norm's row. Adds the row's terms of dgamma and dbeta to the thread's parts. */
static void NAME(row_gradient)(const struct NAME(job) * j, int64_t row, REAL *restrict own)
{
    const int64_t columns = j->columns;
    const REAL *restrict x = j->x + row * columns, *restrict dy = j->dy + row * columns;
    const REAL *restrict gamma = j->gamma, m = j->mean[row], r = j->inverse[row];
    REAL *restrict dx = j->dx + row * columns;
    double all = 0, all_products = 0;
    for (int64_t first = 0; first < columns; first = sum_end(first, columns)) {
        REAL part = 0, part_products = 0;
#pragma omp simd reduction(+ : part, part_products)
        for (int64_t i = first; i < sum_end(first, columns); ++i) {
            REAL h = (x[i] - m) * r;
            part += dy[i] * gamma[i];
            part_products += dy[i] * gamma[i] * h;
            own[i] += dy[i] * h;
            own[columns + i] += dy[i];
        }
        all += (double)part;
        all_products += (double)part_products;
    }
    const REAL sum = (REAL)(all / (double)columns),
               products = (REAL)(all_products / (double)columns);
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i)
        dx[i] = r * (dy[i] * gamma[i] - sum - (x[i] - m) * r * products);
}

static void NAME(backward)(const struct NAME(job) * j)
{
    const double n = (double)j->rows;
    const REAL *x = j->x, *dy = j->dy, *mean = j->mean, *inverse = j->inverse;
    const int64_t columns = j->columns;
    REAL *dx = j->dx;
#pragma omp parallel
    {
        REAL *restrict own = NAME(sums_begin)(j);
        int64_t rows = 0;
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < j->rows; ++row) {
            if (j->layer)
                NAME(row_gradient)(j, row, own);
            else
#pragma omp simd
                for (int64_t i = 0; i < columns; ++i) {
                    REAL d = dy[row * columns + i];
                    own[i] += d * (x[row * columns + i] - mean[i]) * inverse[i];
                    own[columns + i] += d;
                }
            NAME(rows_count)(j, ++rows);
        }
        NAME(sums_unite)(j);
        REAL *means = j->parts; /* sums_unite has emptied the parts */
#pragma omp for schedule(static)
        for (int64_t i = 0; i < columns; ++i) {
            j->dgamma[i] = (REAL)j->sums[i];
            j->dbeta[i] = (REAL)j->sums[columns + i];
            means[i] = (REAL)(j->sums[i] / n);
            means[columns + i] = (REAL)(j->sums[columns + i] / n);
        }
#pragma omp for schedule(static)
        for (int64_t row = 0; row < (j->layer ? 0 : j->rows); ++row)
#pragma omp simd
            for (int64_t i = 0; i < columns; ++i) {
                REAL h = (x[row * columns + i] - mean[i]) * inverse[i];
                dx[row * columns + i] = j->gamma[i] * inverse[i] *
                                        (dy[row * columns + i] - means[columns + i] - h * means[i]);
            }
    }
}

/* A training pass returns the moments; other passes have them in scratch memory. */
static struct NAME(job) NAME(job_of)(const struct work *work)
{
    const struct norm *s = work->shape;
    bool training = s->pass == NORM_TRAINING;
    const int64_t count = 2 * s->columns * work->topology->cores;
    double *sums = work->scratch;
    REAL *parts = (REAL *)(void *)(sums + count), *moments = parts + count;
    return (struct NAME(job)){
        .rows = s->rows,
        .columns = s->columns,
        .layer = s->operation == NORM_LAYER,
        .x = work->input[TENSOR_INPUT],
        .dy = work->input[TENSOR_OUTPUT],
        .gamma = work->input[TENSOR_WEIGHT],
        .beta = work->input[TENSOR_BIAS],
        .y = work->result[TENSOR_OUTPUT],
        .dx = work->result[TENSOR_INPUT],
        .dgamma = work->result[TENSOR_WEIGHT],
        .dbeta = work->result[TENSOR_BIAS],
        .sums = sums,
        .parts = parts,
        .mean = training ? work->result[TENSOR_WEIGHT] : moments,
        .inverse = training ? work->result[TENSOR_BIAS] : moments + norm_statistics(s),
    };
}

static void NAME(before)(const struct work *work)
{
    const struct NAME(job) job = NAME(job_of)(work);
    NAME(moments)(&job);
}

static void NAME(pass)(const struct work *work)
{
    const struct NAME(job) job = NAME(job_of)(work);
    enum norm_pass pass = ((const struct norm *)work->shape)->pass;
    if (pass == NORM_TRAINING && !job.layer)
        NAME(column_moments)(&job);
    (pass == NORM_BACKWARD ? NAME(backward) : NAME(forward))(&job);
}

#else
#define REAL_TEMPLATE "worker/cpu/norm.c"
#include "worker/cpu/real.h"

CPU_SHAPE(norm)

static enum status plain_plan(struct work *work, struct error *error)
{
    const struct norm *s = work->shape;
    const size_t sums = 2 * (size_t)s->columns * (size_t)work->topology->cores;
    (void)error;
    work->scratch_size = sums * sizeof(double) + sums * work->element +
                         2 * (size_t)norm_statistics(s) * work->element;
    return STATUS_OK;
}

static void plain_before(struct work *work)
{
    if (((const struct norm *)work->shape)->pass != NORM_TRAINING)
        (work->precision == PRECISION_FP64 ? before_fp64 : before_fp32)(work);
}

static void plain_run(struct work *work, struct trace *trace)
{
    static const struct region regions[2][3] = {
        [NORM_BATCH] = {{"batch_norm_forward", pass_fp32, pass_fp64},
                        {"batch_norm_training", pass_fp32, pass_fp64},
                        {"batch_norm_backward", pass_fp32, pass_fp64}},
        [NORM_LAYER] = {{"layer_norm_forward", pass_fp32, pass_fp64},
                        {"layer_norm_training", pass_fp32, pass_fp64},
                        {"layer_norm_backward", pass_fp32, pass_fp64}},
    };
    const struct norm *s = work->shape;
    region_run(&regions[s->operation][s->pass], work, trace);
}

const struct cpu_workload norm_routines = {
    CPU_WORKLOAD(norm),
    .routines = {{.implementation = "plain",
                  .algorithm = "loop",
                  .plan = plain_plan,
                  .before = plain_before,
                  .run = plain_run}},
};
#endif
