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

/* ---- backward: each thread has images, or some channels of one ---- */

/* Channels beside each other, whose pixels lie `apart`. */
struct NAME(part) {
    int64_t channels, apart;
    const REAL *x, *dy;
    REAL *dx;
};

/* Pixels of the input that a window has, from the first to the one behind the last. */
static void NAME(window_of)(int64_t out, int64_t stride, int64_t pad, int64_t window, int64_t size,
                            int64_t *begin, int64_t *end)
{
    int64_t first = out * stride - pad, last = first + window;
    *begin = first < 0 ? 0 : first;
    *end = last > size ? size : last;
}

static void NAME(spread_average)(const struct pool *s, const struct NAME(part) * p,
                                 const REAL *restrict dy, const int64_t *rows,
                                 const int64_t *columns)
{
    const REAL share = (REAL)1 / (REAL)(s->window_height * s->window_width);
    for (int64_t h = rows[0]; h < rows[1]; ++h)
        for (int64_t w = columns[0]; w < columns[1]; ++w) {
            REAL *restrict dx = p->dx + (h * s->width + w) * p->apart;
#pragma omp simd
            for (int64_t c = 0; c < p->channels; ++c)
                dx[c] += share * dy[c];
        }
}

static void NAME(spread_max)(const struct pool *s, const struct NAME(part) * p, const REAL *dy,
                             const int64_t *rows, const int64_t *columns)
{
    REAL largest[POOL_CHANNELS];
    int64_t place[POOL_CHANNELS] = {0};
    for (int64_t c = 0; c < p->channels; ++c)
        largest[c] = -(REAL)INFINITY;
    for (int64_t h = rows[0]; h < rows[1]; ++h)
        for (int64_t w = columns[0]; w < columns[1]; ++w) {
            int64_t at = (h * s->width + w) * p->apart;
            for (int64_t c = 0; c < p->channels; ++c)
                if (p->x[at + c] > largest[c]) {
                    largest[c] = p->x[at + c];
                    place[c] = at;
                }
        }
    for (int64_t c = 0; c < p->channels; ++c)
        if (largest[c] > -(REAL)INFINITY)
            p->dx[place[c] + c] += dy[c];
}

static void NAME(part_gradient)(const struct pool *s, const struct NAME(part) * p)
{
    for (int64_t i = 0; i < s->height * s->width; ++i)
        memset(p->dx + i * p->apart, 0, (size_t)p->channels * sizeof *p->dx);
    for (int64_t h = 0; h < s->out_height; ++h)
        for (int64_t w = 0; w < s->out_width; ++w) {
            int64_t rows[2], columns[2];
            const REAL *dy = p->dy + (h * s->out_width + w) * p->apart;
            NAME(window_of)
            (h, s->stride, s->pad_height, s->window_height, s->height, &rows[0], &rows[1]);
            NAME(window_of)
            (w, s->stride, s->pad_width, s->window_width, s->width, &columns[0], &columns[1]);
            if (s->operation == POOL_MAX)
                NAME(spread_max)(s, p, dy, rows, columns);
            else
                NAME(spread_average)(s, p, dy, rows, columns);
        }
}

static void NAME(pool_gradient)(const struct work *work)
{
    const struct pool *s = work->plan;
    const REAL *x = work->input[TENSOR_INPUT], *dy = work->input[TENSOR_OUTPUT];
    REAL *dx = work->result[TENSOR_INPUT];
    bool last = s->layout == LAYOUT_NHWC;
    int64_t each = last ? POOL_CHANNELS : 1, parts = (s->channels + each - 1) / each;
    int64_t in = s->height * s->width, out = s->out_height * s->out_width;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->batch * parts; ++i) {
        int64_t first = i % parts * each, left = s->channels - first, n = i / parts * s->channels;
        int64_t x_begin = n * in + (last ? first : first * in);
        int64_t y_begin = n * out + (last ? first : first * out);
        const struct NAME(part)
            part = {left < each ? left : each, last ? s->channels : 1,
                    s->operation == POOL_MAX ? x + x_begin : NULL, dy + y_begin, dx + x_begin};
        NAME(part_gradient)(s, &part);
    }
}
