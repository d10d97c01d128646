/* conv2d on the CPU: by oneDNN, by im2col and CBLAS, and from the definition, element by element,
 * which has two names, `direct` and, as on a GPU, `plain` (conv2d_element.h).
 *
 * im2col: for a tile of an image's output pixels the input under the kernel is gathered into a
 * column matrix, which stays in a core's own L2, and is multiplied with the filters:
 *
 * - forward: y tile = column * w. A task is a tile.
 *
 * - backward-filter: dw += dy tile * column. A task is a part of all tiles, and has a dw of its
 * own.
 *
 * - backward-data: column = dy tile * w, scattered back into dx. A task is a band of an image's
 * rows; bands recompute the output rows that they share.
 *
 * The threads of one OpenMP region make all BLAS calls, and each call stays in its thread. So a
 * BLAS with threads of its own never puts a second set of them on the cores.
 *
 * A pass of several parts does them in turn: convolutions, and what a layer has beside them. A
 * fused forward part finishes each tile while it is in the cache. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "model/workloads/conv2d.h"
#include "worker/cpu/blas.h"
#include "worker/cpu/onednn.h"
#include "worker/cpu/routine.h"

#ifdef REAL

/* ---- im2col ----
 * A column matrix holds, for each output pixel of a tile, the input under the kernel in the order
 * of a filter's own elements. It lies as the layout wants it: nhwc [pixel][element], nchw
 * [element][pixel]. */

/* `count` values of a column and of an image, where they lie `apart`: gathered, or scattered back,
 * which adds. */
static inline void NAME(exchange)(bool back, REAL *restrict column, REAL *restrict image,
                                  int64_t count, int64_t apart)
{
    if (back)
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
            image[i * apart] += column[i];
    else
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
            column[i] = image[i * apart];
}

static void NAME(exchange_nhwc)(const struct conv2d *s, bool back, const struct task *task,
                                struct band band, REAL *column, REAL *image)
{
    int64_t channels = s->channels / s->groups;
    for (int64_t pixel = task->begin; pixel < task->end; ++pixel) {
        int64_t top = pixel / s->out_width * s->stride - s->pad_height;
        int64_t left = pixel % s->out_width * s->stride - s->pad_width;
        for (int64_t r = 0; r < s->kernel_height; ++r)
            for (int64_t q = 0; q < s->kernel_width; ++q, column += channels) {
                int64_t h = top + r * s->dilation, v = left + q * s->dilation;
                if (h >= band.begin && h < band.end && v >= 0 && v < s->width)
                    NAME(exchange)
                (back, column, image + (h * s->width + v) * s->channels, channels, 1);
                else if (!back) memset(column, 0, (size_t)channels * sizeof *column);
            }
    }
}

static void NAME(exchange_nchw)(const struct conv2d *s, bool back, const struct task *task,
                                struct band band, REAL *column, REAL *image)
{
    int64_t taps = s->kernel_height * s->kernel_width;
    for (int64_t row = 0; row < s->channels / s->groups * taps; ++row) {
        REAL *plane = image + row / taps * s->height * s->width;
        for (int64_t pixel = task->begin; pixel < task->end;) {
            struct run run = run_find(s, row % taps, pixel, task->end, band);
            if (!back)
                memset(column, 0, (size_t)run.count * sizeof *column);
            if (run.begin < run.end)
                NAME(exchange)
            (back, column + run.begin, plane + run.first, run.end - run.begin, s->stride);
            column += run.count;
            pixel += run.count;
        }
    }
}

/* Of a task's group and image x: gathers its column, or scatters it back into the band. */
static void NAME(exchange_column)(const struct conv2d *s, bool back, const struct task *task,
                                  struct band band, REAL *column, REAL *x)
{
    REAL *image = x + conv2d_x_at(s, task->image, 0, 0, task->group * (s->channels / s->groups));
    (s->layout == LAYOUT_NHWC ? NAME(exchange_nhwc) : NAME(exchange_nchw))(s, back, task, band,
                                                                           column, image);
}

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

/* Bias and activation of a tile of z. `b` is NULL without a bias. */
static void NAME(finish_tile)(const struct convolution *c, const struct task *task, REAL *z,
                              const REAL *b)
{
    const struct conv2d *s = &c->shape;
    bool nhwc = s->layout == LAYOUT_NHWC;
    int64_t filters = s->filters / s->groups, pixels = task->end - task->begin;
    int64_t columns = nhwc ? filters : pixels;
    for (int64_t i = 0; i < (nhwc ? pixels : filters); ++i) {
        REAL *row = z + i * c->leading;
        if (b)
#pragma omp simd
            for (int64_t j = 0; j < columns; ++j)
                row[j] += b[task->group * filters + (nhwc ? j : i)];
        NAME(activate)(s->activation, row, columns);
    }
}

static void NAME(im2col_forward)(const struct convolution *c, REAL *x, const REAL *w, REAL *y,
                                 const REAL *b, REAL *scratch)
{
    const struct conv2d *s = &c->shape;
    int filters = (int)(s->filters / s->groups), elements = (int)c->elements;
    int leading = (int)c->leading;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->batch * s->groups * c->tiles; ++i) {
        struct task task = task_find(c, i);
        int pixels = (int)(task.end - task.begin);
        REAL *column = scratch + (size_t)omp_get_thread_num() * c->column;
        REAL *out = y + tile_at(s, &task);
        const REAL *filter = w + task.group * filters * c->elements;
        NAME(exchange_column)(s, false, &task, (struct band){0, s->height}, column, x);
        if (s->layout == LAYOUT_NHWC)
            REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, pixels, filters, elements, 1, column,
                      elements, filter, elements, 0, out, leading);
        else
            REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, filters, pixels, elements, 1,
                      filter, elements, column, pixels, 0, out, leading);
        if (c->fused)
            NAME(finish_tile)(c, &task, out, b);
    }
}

/* Parts but the first have sums of their own, which are then added in a fixed order. */
static void NAME(im2col_filter)(const struct convolution *c, REAL *x, const REAL *y, REAL *dw,
                                REAL *scratch)
{
    const struct conv2d *s = &c->shape;
    int filters = (int)(s->filters / s->groups), elements = (int)c->elements;
    int64_t size = conv2d_w_size(s), total = s->batch * c->tiles;
    REAL *sums = scratch + (size_t)omp_get_max_threads() * c->column;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->groups * c->parts; ++i) {
        int64_t group = i % s->groups, part = i / s->groups;
        REAL *column = scratch + (size_t)omp_get_thread_num() * c->column;
        REAL *sum = (part == 0 ? dw : sums + (part - 1) * size) + group * filters * c->elements;
        int64_t begin = share_begin(total, part, c->parts);
        int64_t end = share_begin(total, part + 1, c->parts);
        for (int64_t at = begin; at < end; ++at) {
            int64_t tile = at / c->tiles * s->groups * c->tiles + group * c->tiles + at % c->tiles;
            struct task task = task_find(c, tile);
            int pixels = (int)(task.end - task.begin);
            const REAL *dy = y + tile_at(s, &task);
            NAME(exchange_column)(s, false, &task, (struct band){0, s->height}, column, x);
            if (s->layout == LAYOUT_NHWC)
                REAL_GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, filters, elements, pixels, 1, dy,
                          (int)c->leading, column, elements, at > begin, sum, elements);
            else
                REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, filters, elements, pixels, 1, dy,
                          (int)c->leading, column, pixels, at > begin, sum, elements);
        }
    }
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < size; ++i)
        for (int64_t part = 1; part < c->parts; ++part)
            dw[i] += sums[(part - 1) * size + i];
}

/* One band of one image: what its outputs, halo included, contribute to its own rows. */
static void NAME(data_band)(const struct convolution *c, int64_t image, int64_t group,
                            struct band band, const REAL *w, const REAL *y, REAL *dx, REAL *column)
{
    const struct conv2d *s = &c->shape;
    int filters = (int)(s->filters / s->groups), elements = (int)c->elements;
    int64_t channels = s->channels / s->groups;
    const REAL *filter = w + group * filters * c->elements;
    struct band outputs = band_outputs(s, band);
    for (int64_t h = band.begin; h < band.end; ++h)
        for (int64_t v = 0; v < s->width; ++v)
            for (int64_t k = group * channels; k < (group + 1) * channels; ++k)
                dx[conv2d_x_at(s, image, h, v, k)] = 0;
    for (int64_t begin = outputs.begin * s->out_width, end = outputs.end * s->out_width;
         begin < end; begin += c->tile) {
        struct task task = {image, group, begin, begin + c->tile < end ? begin + c->tile : end};
        int pixels = (int)(task.end - begin);
        const REAL *dy = y + tile_at(s, &task);
        if (s->layout == LAYOUT_NHWC)
            REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, pixels, elements, filters, 1, dy,
                      (int)c->leading, filter, elements, 0, column, elements);
        else
            REAL_GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, elements, pixels, filters, 1, filter,
                      elements, dy, (int)c->leading, 0, column, pixels);
        NAME(exchange_column)(s, true, &task, band, column, dx);
    }
}

static void NAME(im2col_data)(const struct convolution *c, const REAL *w, const REAL *y, REAL *dx,
                              REAL *scratch)
{
    const struct conv2d *s = &c->shape;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->batch * s->groups * c->bands; ++i) {
        int64_t index = i % c->bands, unit = i / c->bands;
        struct band band = {share_begin(s->height, index, c->bands),
                            share_begin(s->height, index + 1, c->bands)};
        NAME(data_band)
        (c, unit / s->groups, unit % s->groups, band, w, y, dx,
         scratch + (size_t)omp_get_thread_num() * c->column);
    }
}

/* ---- the definition ---- */

static void NAME(direct)(const struct convolution *c, REAL *x, REAL *w, REAL *y, const REAL *b)
{
    const struct conv2d *s = &c->shape;
    bool data = s->pass == CONV2D_BACKWARD_DATA, filter = s->pass == CONV2D_BACKWARD_FILTER;
    const REAL *first = data ? w : x, *second = data || filter ? y : w;
    REAL *result = data ? x : filter ? w : y;
    int64_t size = data ? conv2d_x_size(s) : filter ? conv2d_w_size(s) : conv2d_y_size(s);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < size; ++i) {
        result[i] = NAME(element)(s, first, second, i);
        if (c->fused && b)
            result[i] += b[conv2d_filter_of(s, i)];
        if (c->fused)
            NAME(activate)(s->activation, &result[i], 1);
    }
}

/* ---- what a layer has beside its convolutions ---- */

/* Bias and activation as a step of their own. */
static void NAME(finish)(const struct convolution *c, REAL *z, const REAL *b)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < c->shape.batch * c->shape.groups * c->tiles; ++i) {
        struct task task = task_find(c, i);
        NAME(finish_tile)(c, &task, z + tile_at(&c->shape, &task), b);
    }
}

static void NAME(differentiate)(const struct conv2d *s, const REAL *dy, const REAL *y, REAL *dz)
{
    int64_t count = conv2d_y_size(s);
    if (s->activation == ACTIVATION_RELU) {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < count; ++i) {
            REAL passed = dy[i]; /* always read, so that no branch depends on y's random signs */
            dz[i] = y[i] > 0 ? passed : 0;
        }
        return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; ++i)
        dz[i] = dy[i] * (REAL)activation_slope(s->activation, y[i]);
}

/* Sums are of fp64: a filter may have millions of pixels with random signs. In NHWC, filters that
 * share a cache line are summed together. */
static void NAME(bias_gradient)(const struct conv2d *s, const REAL *dz, REAL *db)
{
    enum { LINE = 64 / sizeof(REAL) };
    int64_t pixels = s->out_height * s->out_width, step = conv2d_y_at(s, 0, 0, 1, 0);
    int64_t together = s->layout == LAYOUT_NHWC ? LINE : 1;
#pragma omp parallel for schedule(static)
    for (int64_t k = 0; k < s->filters; k += together) {
        double sums[LINE] = {0.0};
        int64_t count = k + together < s->filters ? together : s->filters - k;
        for (int64_t n = 0; n < s->batch; ++n) {
            const REAL *image = dz + conv2d_y_at(s, n, 0, 0, k);
            for (int64_t i = 0; i < pixels; ++i)
                for (int64_t j = 0; j < count; ++j)
                    sums[j] += image[i * step + j];
        }
        for (int64_t j = 0; j < count; ++j)
            db[k + j] = (REAL)sums[j];
    }
}

static void NAME(update)(const REAL *w, const REAL *dw, REAL *updated, int64_t count)
{
    const REAL rate = (REAL)CONV2D_LEARNING_RATE;
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < count; ++i)
        updated[i] = w[i] - rate * dw[i];
}

/* ---- the parts of a pass in their order ---- */

/* One convolution: two of x, w, y are inputs, one is the result. A fused forward one takes the
 * bias, if there is one. */
static void NAME(convolve)(const struct work *work, const struct convolution *c, REAL *x, REAL *w,
                           REAL *y, const REAL *b, struct trace *trace)
{
#ifdef ROOFSWEEP_ONEDNN
    if (c->library) {
        onednn_run(c->library, trace);
        return;
    }
#endif
    double begin = trace_begin(trace);
    if (work->routine->by_name)
        NAME(direct)(c, x, w, y, b);
    else if (c->shape.pass == CONV2D_FORWARD)
        NAME(im2col_forward)(c, x, w, y, b, work->scratch);
    else if (c->shape.pass == CONV2D_BACKWARD_DATA)
        NAME(im2col_data)(c, w, y, x, work->scratch);
    else
        NAME(im2col_filter)(c, x, y, w, work->scratch);
    trace_end(trace, names[work->routine->by_name][c->fused ? NAME_FUSED : (int)c->shape.pass],
              begin);
}

static void NAME(forward)(const struct work *work, struct trace *trace)
{
    const struct step *step = work->plan;
    REAL *y = work->result[TENSOR_OUTPUT];
    const REAL *b = work->input[TENSOR_BIAS];
    NAME(convolve)
    (work, &step->forward, work->input[TENSOR_INPUT], work->input[TENSOR_WEIGHT], y, b, trace);
    if (step->forward.fused || !has_layer(work->shape))
        return;
    double begin = trace_begin(trace);
    NAME(finish)(&step->forward, y, b);
    trace_end(trace, "conv2d_bias_activation", begin);
}

static void NAME(backward)(const struct work *work, struct conv2d_parts parts, struct trace *trace)
{
    const struct conv2d *s = work->shape;
    const struct step *step = work->plan;
    REAL *dz = work->input[TENSOR_OUTPUT];
    double begin = trace_begin(trace);
    if (conv2d_needs_y(s)) {
        dz = (REAL *)work->scratch + step->dz;
        NAME(differentiate)(s, work->input[TENSOR_OUTPUT], work->result[TENSOR_OUTPUT], dz);
        trace_end(trace, "conv2d_activation_gradient", begin);
        begin = trace_begin(trace);
    }
    if (work->writes[TENSOR_BIAS]) {
        NAME(bias_gradient)(s, dz, work->result[TENSOR_BIAS]);
        trace_end(trace, "conv2d_bias_gradient", begin);
    }
    if (parts.data)
        NAME(convolve)
    (work, &step->data, work->result[TENSOR_INPUT], work->input[TENSOR_WEIGHT], dz, NULL, trace);
    if (parts.filter)
        NAME(convolve)
    (work, &step->filter, work->input[TENSOR_INPUT], work->result[TENSOR_WEIGHT], dz, NULL, trace);
}

static void NAME(step)(const struct work *work, struct conv2d_parts parts, struct trace *trace)
{
    if (parts.forward)
        NAME(forward)(work, trace);
    if (parts.data || parts.filter)
        NAME(backward)(work, parts, trace);
    if (!parts.update)
        return;
    double begin = trace_begin(trace);
    for (int i = 0; i < 2; ++i) {
        enum tensor tensor = i ? TENSOR_BIAS : TENSOR_WEIGHT;
        enum tensor updated = i ? TENSOR_BIAS_UPDATED : TENSOR_WEIGHT_UPDATED;
        if (work->writes[updated])
            NAME(update)
        (work->input[tensor], work->result[tensor], work->result[updated], work->size[tensor]);
    }
    trace_end(trace, "conv2d_update", begin);
}

#else

/* One convolution of a pass, and how im2col cuts it into tasks. */
struct convolution {
    struct conv2d shape;    /* `pass` is one of the first three */
    bool fused;             /* the forward one adds the bias and applies the activation */
    int64_t elements;       /* of one filter, and of one pixel's column */
    int64_t pixels;         /* of one image's output */
    int64_t leading;        /* elements of y from one row as BLAS sees it to the next */
    int64_t tile, tiles;    /* pixels at a time; tiles of an image */
    int64_t bands, parts;   /* of an image's rows, for dx; of all tiles, for dw */
    size_t column;          /* elements of one thread's column matrix */
    struct onednn *library; /* owned. NULL: it is not the library's */
    size_t memory;          /* of the library, in the scratch memory, in bytes */
};

/* Names of convolutions in traces: im2col's, the definition's; by pass. */
enum { NAME_FUSED = CONV2D_BACKWARD_FILTER + 1, NAMES };
static const char *const names[2][NAMES] = {
    {"conv2d_im2col_forward", "conv2d_im2col_backward_data", "conv2d_im2col_backward_filter",
     "conv2d_im2col_forward_fused"},
    {"conv2d_direct_forward", "conv2d_direct_backward_data", "conv2d_direct_backward_filter",
     "conv2d_direct_forward_fused"},
};

/* A pass. */
enum { CONVOLUTIONS = 3 };
struct step {
    union {
        struct {
            struct convolution forward, data, filter;
        };
        struct convolution all[CONVOLUTIONS];
    };
    size_t dz;      /* in the scratch memory, in elements; where conv2d_needs_y */
    char name[128]; /* of the library's code */
};

static bool has_layer(const struct conv2d *s)
{
    return s->bias || s->activation != ACTIVATION_NONE;
}

/* Some output pixels of one image and group. */
struct task {
    int64_t image, group, begin, end;
};

static struct task task_find(const struct convolution *c, int64_t index)
{
    int64_t tile = index % c->tiles, unit = index / c->tiles;
    return (struct task){unit / c->shape.groups, unit % c->shape.groups,
                         share_begin(c->pixels, tile, c->tiles),
                         share_begin(c->pixels, tile + 1, c->tiles)};
}

/* Where a task's part of y begins. */
static int64_t tile_at(const struct conv2d *s, const struct task *task)
{
    return conv2d_y_at(s, task->image, 0, task->begin, task->group * (s->filters / s->groups));
}

/* Rows of an image. */
struct band {
    int64_t begin, end;
};

/* The rows of outputs that reach into a band of the input. */
static struct band band_outputs(const struct conv2d *s, struct band band)
{
    struct band outputs;
    int64_t other;
    conv2d_outputs(s->stride, (s->kernel_height - 1) * s->dilation - s->pad_height, band.begin,
                   band.end, s->out_height, &outputs.begin, &other);
    conv2d_outputs(s->stride, -s->pad_height, band.begin, band.end, s->out_height, &other,
                   &outputs.end);
    return outputs;
}

/* Pixels of one output row, as one tap of the kernel sees them: `count` of them, those from `begin`
 * to `end` inside of the image, the first of which is element `first` of the plane. */
struct run {
    int64_t count, begin, end, first;
};

static struct run run_find(const struct conv2d *s, int64_t tap, int64_t pixel, int64_t last,
                           struct band band)
{
    int64_t out_h = pixel / s->out_width, out_w = pixel % s->out_width;
    int64_t h = out_h * s->stride + tap / s->kernel_width * s->dilation - s->pad_height;
    int64_t offset = out_w * s->stride + tap % s->kernel_width * s->dilation - s->pad_width;
    struct run run = {.count = s->out_width - out_w};
    if (run.count > last - pixel)
        run.count = last - pixel;
    if (h >= band.begin && h < band.end)
        conv2d_outputs(s->stride, offset, 0, s->width, run.count, &run.begin, &run.end);
    run.first = h * s->width + offset + run.begin * s->stride;
    return run;
}

#define ELEMENT              element_fp32
#define REAL                 float
#define SOURCE               const float *
#define LOAD(source, offset) (source)[offset]
#include "model/workloads/conv2d_element.h"
#define ELEMENT              element_fp64
#define REAL                 double
#define SOURCE               const double *
#define LOAD(source, offset) (source)[offset]
#include "model/workloads/conv2d_element.h"

#define REAL_TEMPLATE "worker/cpu/conv2d.c"
#include "worker/cpu/real.h"

static void conv2d_describe(struct work *work)
{
    struct conv2d *s = work->shape;
    *s = conv2d_from(&work->config);
    struct conv2d_parts parts = conv2d_parts[s->pass];
    bool forward = parts.forward || conv2d_needs_y(s), backward = parts.data || parts.filter;
    work->size[TENSOR_INPUT] = conv2d_x_size(s);
    work->size[TENSOR_WEIGHT] = work->size[TENSOR_WEIGHT_UPDATED] = conv2d_w_size(s);
    work->size[TENSOR_OUTPUT] = conv2d_y_size(s);
    work->size[TENSOR_BIAS] = work->size[TENSOR_BIAS_UPDATED] = s->filters;
    work->reads[TENSOR_INPUT] = forward || parts.filter;
    work->reads[TENSOR_WEIGHT] = forward || parts.data;
    work->reads[TENSOR_OUTPUT] = backward;
    work->reads[TENSOR_BIAS] = s->bias && forward;
    work->writes[TENSOR_INPUT] = parts.data;
    work->writes[TENSOR_WEIGHT] = parts.filter;
    work->writes[TENSOR_OUTPUT] = forward;
    work->writes[TENSOR_BIAS] = s->bias && parts.data && parts.filter;
    work->writes[TENSOR_WEIGHT_UPDATED] = parts.update;
    work->writes[TENSOR_BIAS_UPDATED] = parts.update && s->bias;
}

static int64_t ceil_divide(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Returns the scratch memory that it needs, in elements. The column matrix takes half of a core's
 * L2, filters and outputs the rest. A tile has at least so many pixels that packing the filters
 * pays. There are tiles, bands and parts for all threads, if the image is large enough. */
static size_t convolution_plan(struct convolution *c, const struct work *work,
                               enum conv2d_pass pass)
{
    const int64_t worthwhile = 64, least = 16;
    const size_t page = 4096 / work->element;
    int64_t threads = work->topology->cores;
    struct conv2d s = conv2d_bare(work->shape, pass);
    int64_t pixels = s.out_height * s.out_width, units = s.batch * s.groups;
    int64_t elements = s.kernel_height * s.kernel_width * (s.channels / s.groups);
    double l2 = work->topology->cache[LEVEL_L2] / work->topology->cores;
    l2 = isfinite(l2) ? l2 : 1 << 20;
    int64_t fit = (int64_t)(l2 / 2.0 / (double)work->element / (double)elements);
    int64_t even = ceil_divide(units * pixels, threads);
    int64_t tile = clamp(fit, worthwhile, even > least ? even : least);
    int64_t tiles = ceil_divide(pixels, clamp(tile, 1, pixels));
    *c = (struct convolution){
        .shape = s,
        .elements = elements,
        .pixels = pixels,
        .leading = s.layout == LAYOUT_NHWC ? s.filters : pixels,
        .tile = ceil_divide(pixels, tiles),
        .tiles = tiles,
        .bands = clamp(ceil_divide(threads, units), 1, s.height),
        .parts = clamp(ceil_divide(threads, s.groups), 1, s.batch * tiles),
    };
    c->column = ((size_t)(c->tile * elements) + page - 1) / page * page;
    size_t sums =
        pass == CONV2D_BACKWARD_FILTER ? (size_t)(c->parts - 1) * (size_t)conv2d_w_size(&s) : 0;
    return (size_t)threads * c->column + sums;
}

static void convolution_add_layer(struct convolution *forward, const struct conv2d *s)
{
    forward->shape.bias = s->bias;
    forward->shape.activation = s->activation;
    forward->fused = has_layer(s) && s->fusion != FUSION_SEPARATE;
}

/* The convolutions run one after the other, in the same scratch memory; dz lies after it. */
static enum status step_plan(struct work *work, struct error *error)
{
    (void)error;
    struct step *step = work->plan;
    const struct conv2d *s = work->shape;
    struct conv2d_parts parts = conv2d_parts[s->pass];
    size_t page = 4096 / work->element, scratch = 0, needed = 0;
    if (parts.forward || conv2d_needs_y(s)) {
        scratch = convolution_plan(&step->forward, work, CONV2D_FORWARD);
        convolution_add_layer(&step->forward, s);
    }
    if (parts.data)
        needed = convolution_plan(&step->data, work, CONV2D_BACKWARD_DATA);
    scratch = needed > scratch ? needed : scratch;
    if (parts.filter)
        needed = convolution_plan(&step->filter, work, CONV2D_BACKWARD_FILTER);
    scratch = needed > scratch ? needed : scratch;
    if (work->routine->by_name)
        scratch = 0;
    step->dz = (scratch + page - 1) / page * page;
    if (conv2d_needs_y(s))
        scratch = step->dz + (size_t)conv2d_y_size(s);
    work->scratch_size = scratch * work->element;
    return STATUS_OK;
}

static enum status im2col_plan(struct work *work, struct error *error)
{
    const struct conv2d *s = work->shape;
    const int64_t extents[] = {s->kernel_height * s->kernel_width * (s->channels / s->groups),
                               s->channels, s->filters, s->out_height * s->out_width};
    enum status status = blas_check(extents, sizeof extents / sizeof *extents, error);
    return status ? status : step_plan(work, error);
}

static void parts_run(struct work *work, struct conv2d_parts parts, struct trace *trace)
{
    (work->precision == PRECISION_FP64 ? step_fp64 : step_fp32)(work, parts, trace);
}

/* The y that the activation's gradient needs. */
static void step_before(struct work *work)
{
    const struct conv2d *s = work->shape;
    if (conv2d_needs_y(s) && !conv2d_parts[s->pass].forward)
        parts_run(work, (struct conv2d_parts){.forward = true}, NULL);
}

static void step_run(struct work *work, struct trace *trace)
{
    parts_run(work, conv2d_parts[((const struct conv2d *)work->shape)->pass], trace);
}

#ifdef ROOFSWEEP_ONEDNN
/* Forward and backward-data get the weights packed before, as frameworks do that keep a model; a
 * step that updates the weights packs them anew each time. backward-filter gives the gradient back
 * in the user's layout, within its time. */
static struct onednn_tensor filter_tensor(const struct conv2d *s, bool kept)
{
    int64_t filters = s->filters / s->groups, channels = s->channels / s->groups;
    int64_t taps = s->kernel_height * s->kernel_width;
    bool nhwc = s->layout == LAYOUT_NHWC;
    return (struct onednn_tensor){
        .place = kept ? ONEDNN_PACKED : ONEDNN_REORDERED,
        .precision = s->precision,
        .axes = 5,
        .extents = {s->groups, filters, channels, s->kernel_height, s->kernel_width},
        .strides = {filters * channels * taps, channels * taps, nhwc ? 1 : taps,
                    nhwc ? s->kernel_width * channels : s->kernel_width, nhwc ? channels : 1},
    };
}

/* By pass: what stands for x, w and y. */
static const struct {
    enum onednn_pass pass;
    enum onednn_argument x, w, y;
} passes[] = {
    [CONV2D_FORWARD] = {ONEDNN_INFERENCE, ONEDNN_SOURCE, ONEDNN_WEIGHTS, ONEDNN_DESTINATION},
    [CONV2D_BACKWARD_DATA] = {ONEDNN_BACKWARD_DATA, ONEDNN_DIFF_SOURCE, ONEDNN_WEIGHTS,
                              ONEDNN_DIFF_DESTINATION},
    [CONV2D_BACKWARD_FILTER] = {ONEDNN_BACKWARD_WEIGHTS, ONEDNN_SOURCE, ONEDNN_DIFF_WEIGHTS,
                                ONEDNN_DIFF_DESTINATION},
};

/* The library adds a bias and applies a function within its convolution, on the way forward. In
 * nhwc it works on the user's tensors as they are; in nchw it copies them to blocks of channels and
 * back in every iteration, as PyTorch does. */
static enum status onednn_convolution_plan(struct convolution *c, struct work *work,
                                           enum conv2d_pass pass, struct error *error)
{
    static const enum onednn_function functions[] = {
        [ACTIVATION_NONE] = ONEDNN_IDENTITY,
        [ACTIVATION_RELU] = ONEDNN_RELU,
        [ACTIVATION_SIGMOID] = ONEDNN_SIGMOID,
        [ACTIVATION_TANH] = ONEDNN_TANH,
    };
    const struct conv2d *s = work->shape;
    bool nhwc = s->layout == LAYOUT_NHWC;
    enum onednn_place place = nhwc ? ONEDNN_PLAIN : ONEDNN_REORDERED;
    bool kept = pass != CONV2D_BACKWARD_FILTER && !conv2d_parts[s->pass].update;
    convolution_plan(c, work, pass);
    if (pass == CONV2D_FORWARD)
        convolution_add_layer(c, s);
    struct onednn_operation operation = {
        .kind = ONEDNN_CONVOLUTION,
        .pass = passes[pass].pass,
        .function = c->fused ? functions[s->activation] : ONEDNN_IDENTITY,
        .stride = {s->stride, s->stride},
        .dilation = {s->dilation, s->dilation},
        .padding = {s->pad_height, s->pad_width},
    };
    operation.tensors[passes[pass].x] =
        onednn_image(s->precision, place, nhwc, s->batch, s->channels, s->height, s->width);
    operation.tensors[passes[pass].w] = filter_tensor(s, kept);
    operation.tensors[passes[pass].y] =
        onednn_image(s->precision, place, nhwc, s->batch, s->filters, s->out_height, s->out_width);
    if (c->fused && s->bias)
        operation.tensors[ONEDNN_BIAS] = onednn_vector(s->precision, s->filters);
    return onednn_create_for(work, &operation, NULL, &c->library, &c->memory, error);
}

/* Each convolution is the library's. What a layer has beside them it has not, apart from what it
 * fuses: that is done by the loops that other routines have, too. */
static enum status onednn_plan(struct work *work, struct error *error)
{
    struct step *step = work->plan;
    const struct conv2d *s = work->shape;
    const struct conv2d_parts parts = conv2d_parts[s->pass];
    bool forward = parts.forward || conv2d_needs_y(s), backward = parts.data || parts.filter;
    bool loops = parts.update || (has_layer(s) && (backward || s->fusion == FUSION_SEPARATE));
    if (loops && s->precision != PRECISION_FP32)
        return error_set(error, STATUS_UNSUPPORTED,
                         "bias, activation and update outside of the convolution are in fp32");
    if (forward)
        TRY(onednn_convolution_plan(&step->forward, work, CONV2D_FORWARD, error));
    if (parts.data)
        TRY(onednn_convolution_plan(&step->data, work, CONV2D_BACKWARD_DATA, error));
    if (parts.filter)
        TRY(onednn_convolution_plan(&step->filter, work, CONV2D_BACKWARD_FILTER, error));
    if (conv2d_needs_y(s))
        step->dz = scratch_take(work, (size_t)conv2d_y_size(s) * work->element) / work->element;
    for (size_t i = 0; i < CONVOLUTIONS; ++i) {
        const char *name = step->all[i].library ? onednn_name(step->all[i].library) : "";
        size_t used = strlen(step->name);
        if (!strstr(step->name, name))
            snprintf(step->name + used, sizeof step->name - used, "%s%s", used ? "; " : "", name);
    }
    return STATUS_OK;
}

static enum status onednn_ready(struct work *work, struct error *error)
{
    const struct step *step = work->plan;
    char *scratch = work->scratch;
    for (size_t i = 0; i < CONVOLUTIONS; ++i) {
        const struct convolution *c = &step->all[i];
        const enum conv2d_pass pass = c->shape.pass;
        bool dz = pass != CONV2D_FORWARD && conv2d_needs_y(work->shape);
        void *const *x = pass == CONV2D_BACKWARD_DATA ? work->result : work->input;
        void *const *w = pass == CONV2D_BACKWARD_FILTER ? work->result : work->input;
        void *const *y = pass == CONV2D_FORWARD ? work->result : work->input;
        void *data[ONEDNN_ARGUMENTS] = {[ONEDNN_BIAS] = c->fused ? work->input[TENSOR_BIAS] : NULL};
        data[passes[pass].x] = x[TENSOR_INPUT];
        data[passes[pass].w] = w[TENSOR_WEIGHT];
        data[passes[pass].y] = dz ? scratch + step->dz * work->element : y[TENSOR_OUTPUT];
        if (c->library)
            TRY(onednn_bind(c->library, data, scratch + c->memory, error));
    }
    return STATUS_OK;
}

static void onednn_release(struct work *work)
{
    const struct step *step = work->plan;
    for (size_t i = 0; i < CONVOLUTIONS; ++i)
        onednn_destroy(step->all[i].library);
}

static const char *onednn_names(const struct work *work)
{
    return ((const struct step *)work->plan)->name;
}
#endif

/* What all ways have in common. */
#define STEP_ROUTINE(plan_function)                                                                \
    .plan_size = sizeof(struct step), .plan = plan_function, .before = step_before, .run = step_run

const struct cpu_workload conv2d_routines = {
    .workload = &conv2d_workload,
    .shape_size = sizeof(struct conv2d),
    .describe = conv2d_describe,
    .routines =
        {
#ifdef ROOFSWEEP_ONEDNN
            {.implementation = "onednn",
             .own_regions = true,
             .check = onednn_check,
             .ready = onednn_ready,
             .release = onednn_release,
             .name = onednn_names,
             STEP_ROUTINE(onednn_plan)},
#endif
            {.implementation = "im2col", .algorithm = "im2col+gemm", STEP_ROUTINE(im2col_plan)},
            {.implementation = "direct",
             .algorithm = "direct",
             .by_name = true,
             STEP_ROUTINE(step_plan)},
            {.implementation = "plain",
             .algorithm = "direct",
             .by_name = true,
             STEP_ROUTINE(step_plan)},
        },
};
#endif
