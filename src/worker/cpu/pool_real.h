/* Pools in one precision: a template, see real.h. Written for pool.c, which explains it. */
#include "worker/cpu/real.h"

/* `count` values of y that lie beside each other, from x values that lie `apart`. */
static void NAME(take)(enum pool_operation operation, bool first, int64_t count, int64_t apart,
                       const REAL *restrict x, REAL *restrict y)
{
    if (first) {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
            y[i] = x[i * apart];
    } else if (operation == POOL_MAX) {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
            y[i] = x[i * apart] > y[i] ? x[i * apart] : y[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
            y[i] += x[i * apart];
    }
}

/* One pixel of y, all its channels. */
static void NAME(pixel)(const struct pool *s, const REAL *x, int64_t top, int64_t left, REAL *y)
{
    bool first = true;
    for (int64_t h = top < 0 ? 0 : top; h < top + s->window_height && h < s->height; ++h)
        for (int64_t w = left < 0 ? 0 : left; w < left + s->window_width && w < s->width; ++w) {
            NAME(take)
            (s->operation, first, s->channels, 1, x + (h * s->width + w) * s->channels, y);
            first = false;
        }
}

/* Columns [begin, end) of y whose column q of the window lies within the input. */
static void NAME(line_part)(const struct pool *s, int64_t q, int64_t *begin, int64_t *end)
{
    int64_t lacking = s->pad_width - q, last = s->width - 1 + lacking;
    *begin = lacking > 0 ? (lacking + s->stride - 1) / s->stride : 0;
    *end = last < 0 ? 0 : last / s->stride + 1;
    if (*end > s->out_width)
        *end = s->out_width;
}

/* One line of y in one channel. */
static void NAME(line)(const struct pool *s, const REAL *x, int64_t top, REAL *y)
{
    const REAL nothing = s->operation == POOL_MAX ? -(REAL)INFINITY : 0;
    for (int64_t w = 0; w < s->out_width; ++w)
        y[w] = nothing;
    for (int64_t h = top < 0 ? 0 : top; h < top + s->window_height && h < s->height; ++h)
        for (int64_t q = 0; q < s->window_width; ++q) {
            int64_t begin, end;
            NAME(line_part)(s, q, &begin, &end);
            if (begin < end)
                NAME(take)
            (s->operation, false, end - begin, s->stride,
             x + h * s->width + begin * s->stride + q - s->pad_width, y + begin);
        }
}

static void NAME(divide)(const struct pool *s, int64_t count, REAL *y)
{
    const REAL share = (REAL)1 / (REAL)(s->window_height * s->window_width);
    if (s->operation == POOL_AVERAGE)
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
            y[i] *= share;
}

static void NAME(pool_nhwc)(const struct work *work)
{
    const struct pool *s = work->plan;
    const REAL *x = work->input[TENSOR_INPUT];
    REAL *y = work->result[TENSOR_OUTPUT];
    int64_t row = s->out_width * s->channels;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->batch * s->out_height; ++i) {
        const REAL *image = x + i / s->out_height * (s->height * s->width * s->channels);
        int64_t top = i % s->out_height * s->stride - s->pad_height;
        for (int64_t w = 0; w < s->out_width; ++w)
            NAME(pixel)
        (s, image, top, w * s->stride - s->pad_width, y + i * row + w * s->channels);
        NAME(divide)(s, row, y + i * row);
    }
}

static void NAME(pool_nchw)(const struct work *work)
{
    const struct pool *s = work->plan;
    const REAL *x = work->input[TENSOR_INPUT];
    REAL *y = work->result[TENSOR_OUTPUT];
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->batch * s->channels * s->out_height; ++i) {
        const REAL *image = x + i / s->out_height * (s->height * s->width);
        NAME(line)
        (s, image, i % s->out_height * s->stride - s->pad_height, y + i * s->out_width);
        NAME(divide)(s, s->out_width, y + i * s->out_width);
    }
}
