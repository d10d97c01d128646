/* What a layer is beside its convolutions, in one precision: bias, activation, their gradients and the
 * update. A template, see real.h; written for conv2d.c. */
#include "worker/cpu/real.h"

static void NAME(activate)(enum activation activation, REAL *z, int64_t count)
{
    if (activation == ACTIVATION_RELU) {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
            z[i] = z[i] > 0 ? z[i] : 0;
    } else if (activation != ACTIVATION_NONE) {
        for (int64_t i = 0; i < count; ++i)
            z[i] = (REAL)activation_value(activation, z[i]);
    }
}

/* A filter's own number for each element (nhwc), or one number for all (nchw). */
static void NAME(finish_row)(enum activation activation, const REAL *each, REAL all, REAL *z,
                             int64_t count)
{
    if (each) {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
            z[i] += each[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
            z[i] += all;
    }
    NAME(activate)(activation, z, count);
}

/* Bias and activation of a tile of z while it is in the cache. `b` is NULL without a bias. */
static void NAME(finish_tile)(const struct conv2d *s, int64_t pixels, int64_t filters, REAL *z,
                              int64_t leading, const REAL *b)
{
    bool nhwc = s->layout == LAYOUT_NHWC;
    for (int64_t row = 0; row < (nhwc ? pixels : filters); ++row)
        NAME(finish_row)
    (s->activation, nhwc ? b : NULL, nhwc || !b ? 0 : b[row], z + row * leading,
     nhwc ? filters : pixels);
}

/* The same of all of z, as a step of its own. */
static void NAME(finish)(const struct conv2d *s, REAL *z, const REAL *b)
{
    bool nhwc = s->layout == LAYOUT_NHWC;
    int64_t pixels = s->out_height * s->out_width, count = nhwc ? s->filters : pixels;
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < conv2d_y_size(s) / count; ++row)
        NAME(finish_row)
    (s->activation, nhwc ? b : NULL, nhwc || !b ? 0 : b[row % s->filters], z + row * count, count);
}

static void NAME(differentiate)(const struct conv2d *s, const REAL *dy, const REAL *y, REAL *dz)
{
    int64_t count = conv2d_y_size(s);
    enum activation activation = s->activation;
    if (activation == ACTIVATION_RELU) {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < count; ++i)
            dz[i] = y[i] > 0 ? dy[i] : 0;
    } else {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < count; ++i)
            dz[i] = dy[i] * (REAL)activation_slope(activation, y[i]);
    }
}

/* Sums are of fp64: a filter may have millions of pixels with random signs. */
static void NAME(bias_gradient)(const struct conv2d *s, const REAL *dz, REAL *db)
{
    int64_t pixels = s->out_height * s->out_width, step = conv2d_y_at(s, 0, 0, 1, 0);
#pragma omp parallel for schedule(static)
    for (int64_t k = 0; k < s->filters; ++k) {
        double sum = 0.0;
        for (int64_t n = 0; n < s->batch; ++n) {
            const REAL *image = dz + conv2d_y_at(s, n, 0, 0, k);
            for (int64_t i = 0; i < pixels; ++i)
                sum += image[i * step];
        }
        db[k] = (REAL)sum;
    }
}

static void NAME(update)(const REAL *w, const REAL *dw, REAL *updated, int64_t count)
{
    const REAL rate = (REAL)CONV2D_LEARNING_RATE;
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < count; ++i)
        updated[i] = w[i] - rate * dw[i];
}
