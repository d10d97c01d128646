/* im2col and GEMM in one precision: a template, see real.h. Written for conv2d.c, which explains
 * it.
 *
 * A column matrix holds, for each output pixel of a tile, the input under the kernel in the order
 * of a filter's own elements. It lies as the layout wants it: nhwc [pixel][element], nchw
 * [element][pixel]. An image is one sample of x; a plane is one channel of it (nchw). */
#include "worker/cpu/real.h"

/* Here a tile may reach over several images: pixels count through all of them. */
static void NAME(gather_nhwc)(const struct conv2d *s, const REAL *x, int64_t group,
                              struct tile tile, REAL *column)
{
    int64_t channels = s->channels / s->groups;
    for (int64_t pixel = tile.begin; pixel < tile.end; ++pixel) {
        int64_t out_row = pixel / s->out_width;
        int64_t top = out_row % s->out_height * s->stride - s->pad_height;
        int64_t left = pixel % s->out_width * s->stride - s->pad_width;
        const REAL *image = x + conv2d_x_at(s, out_row / s->out_height, 0, 0, group * channels);
        for (int64_t r = 0; r < s->kernel_height; ++r)
            for (int64_t q = 0; q < s->kernel_width; ++q, column += channels) {
                int64_t h = top + r * s->dilation, v = left + q * s->dilation;
                if (h >= 0 && h < s->height && v >= 0 && v < s->width)
                    memcpy(column, image + (h * s->width + v) * s->channels,
                           (size_t)channels * sizeof *column);
                else
                    memset(column, 0, (size_t)channels * sizeof *column);
            }
    }
}

static void NAME(scatter_nhwc)(const struct conv2d *s, const REAL *column, int64_t group,
                               struct tile tile, struct band band, REAL *image)
{
    int64_t channels = s->channels / s->groups;
    for (int64_t pixel = tile.begin; pixel < tile.end; ++pixel) {
        int64_t top = pixel / s->out_width * s->stride - s->pad_height;
        int64_t left = pixel % s->out_width * s->stride - s->pad_width;
        for (int64_t r = 0; r < s->kernel_height; ++r)
            for (int64_t q = 0; q < s->kernel_width; ++q, column += channels) {
                int64_t h = top + r * s->dilation, v = left + q * s->dilation;
                if (h < band.begin || h >= band.end || v < 0 || v >= s->width)
                    continue;
                REAL *to = image + (h * s->width + v) * s->channels + group * channels;
#pragma omp simd
                for (int64_t c = 0; c < channels; ++c)
                    to[c] += column[c];
            }
    }
}

static void NAME(gather_nchw)(const struct conv2d *s, const REAL *image, int64_t group,
                              struct tile tile, REAL *column)
{
    int64_t taps = s->kernel_height * s->kernel_width;
    struct band all = {0, s->height};
    for (int64_t row = 0; row < s->channels / s->groups * taps; ++row) {
        const REAL *plane =
            image + (group * (s->channels / s->groups) + row / taps) * s->height * s->width;
        for (int64_t pixel = tile.begin; pixel < tile.end;) {
            struct run run = run_find(s, row % taps, pixel, tile, all);
            memset(column, 0, (size_t)run.begin * sizeof *column);
            if (s->stride == 1 && run.end > run.begin)
                memcpy(column + run.begin, plane + run.first,
                       (size_t)(run.end - run.begin) * sizeof *column);
            else
                for (int64_t i = run.begin; i < run.end; ++i)
                    column[i] = plane[run.first + (i - run.begin) * s->stride];
            memset(column + run.end, 0, (size_t)(run.count - run.end) * sizeof *column);
            column += run.count;
            pixel += run.count;
        }
    }
}

static void NAME(scatter_nchw)(const struct conv2d *s, const REAL *column, int64_t group,
                               struct tile tile, struct band band, REAL *image)
{
    int64_t taps = s->kernel_height * s->kernel_width;
    for (int64_t row = 0; row < s->channels / s->groups * taps; ++row) {
        REAL *plane =
            image + (group * (s->channels / s->groups) + row / taps) * s->height * s->width;
        for (int64_t pixel = tile.begin; pixel < tile.end;) {
            struct run run = run_find(s, row % taps, pixel, tile, band);
            if (s->stride == 1) {
#pragma omp simd
                for (int64_t i = run.begin; i < run.end; ++i)
                    plane[run.first + i - run.begin] += column[i];
            } else {
                for (int64_t i = run.begin; i < run.end; ++i)
                    plane[run.first + (i - run.begin) * s->stride] += column[i];
            }
            column += run.count;
            pixel += run.count;
        }
    }
}

/* A dense row-major matrix as BLAS sees it. */
struct NAME(matrix) {
    REAL *data;
    int leading;
};

/* A group's channels of a tile's pixels, in a tensor of the output's extent. */
static struct NAME(matrix) NAME(view)(const struct conv2d_plan *plan, const struct task *task,
                                      REAL *tensor, int64_t channels)
{
    int64_t first = task->group * (channels / plan->shape.groups);
    if (plan->shape.layout == LAYOUT_NHWC)
        return (struct NAME(matrix)){
            tensor + (task->image * plan->pixels + task->tile.begin) * channels + first,
            (int)channels};
    return (struct NAME(matrix)){tensor + (task->image * channels + first) * plan->pixels +
                                     task->tile.begin,
                                 (int)plan->pixels};
}

/* Where a tile's column matrix lies: in the image itself, or in the thread's scratch memory. */
static struct NAME(matrix)
    NAME(column)(const struct conv2d_plan *plan, const struct task *task, REAL *x, REAL *scratch)
{
    if (plan->in_place)
        return NAME(view)(plan, task, x, plan->shape.channels);
    int64_t pixels = task->tile.end - task->tile.begin;
    bool nhwc = plan->shape.layout == LAYOUT_NHWC;
    return (struct NAME(matrix)){scratch, (int)(nhwc ? plan->elements : pixels)};
}

static void NAME(gather)(const struct conv2d_plan *plan, const struct task *task, const REAL *x,
                         REAL *column)
{
    const struct conv2d *s = &plan->shape;
    if (plan->in_place)
        return;
    const REAL *image = x + conv2d_x_at(s, task->image, 0, 0, 0);
    if (s->layout == LAYOUT_NHWC)
        NAME(gather_nhwc)(s, x, task->group, task->tile, column);
    else
        NAME(gather_nchw)(s, image, task->group, task->tile, column);
}

static void NAME(forward)(const struct conv2d_plan *plan, REAL *x, const REAL *w, REAL *y,
                          const REAL *b, REAL *scratch)
{
    const struct conv2d *s = &plan->shape;
    int filters = (int)(s->filters / s->groups), elements = (int)plan->elements;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < plan->images * s->groups * plan->tiles; ++i) {
        struct task task = task_find(plan, i);
        int pixels = (int)(task.tile.end - task.tile.begin);
        struct NAME(matrix) column =
            NAME(column)(plan, &task, x, scratch + (size_t)omp_get_thread_num() * plan->column);
        struct NAME(matrix) out = NAME(view)(plan, &task, y, s->filters);
        const REAL *filter = w + task.group * filters * plan->elements;
        NAME(gather)(plan, &task, x, column.data);
        if (s->layout == LAYOUT_NHWC)
            REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, pixels, filters, elements, 1,
                      column.data, column.leading, filter, elements, 0, out.data, out.leading);
        else
            REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, filters, pixels, elements, 1,
                      filter, elements, column.data, column.leading, 0, out.data, out.leading);
        if (plan->fused)
            NAME(finish_tile)
        (s, pixels, filters, out.data, out.leading, b ? b + task.group * filters : NULL);
    }
}

/* One unit, which is a slice of one group's filters, summed over one part of all tiles. */
static void NAME(filter_unit)(const struct conv2d_plan *plan, int64_t unit, int64_t part, REAL *x,
                              REAL *y, REAL *dw, REAL *scratch)
{
    const struct conv2d *s = &plan->shape;
    int64_t filters = s->filters / s->groups, total = plan->images * plan->tiles;
    int64_t group = unit / plan->slices, slice = unit % plan->slices;
    int64_t first = share_begin(filters, slice, plan->slices);
    int rows = (int)(share_begin(filters, slice + 1, plan->slices) - first);
    int elements = (int)plan->elements;
    int64_t begin = share_begin(total, part, plan->parts);
    int64_t end = share_begin(total, part + 1, plan->parts);
    dw += (group * filters + first) * plan->elements;
    for (int64_t i = begin; i < end; ++i) {
        struct task task = task_find(plan, i / plan->tiles * s->groups * plan->tiles +
                                               group * plan->tiles + i % plan->tiles);
        int pixels = (int)(task.tile.end - task.tile.begin);
        struct NAME(matrix) column = NAME(column)(plan, &task, x, scratch);
        struct NAME(matrix) dy = NAME(view)(plan, &task, y, s->filters);
        REAL sum = i > begin;
        NAME(gather)(plan, &task, x, column.data);
        if (s->layout == LAYOUT_NHWC)
            REAL_GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, rows, elements, pixels, 1,
                      dy.data + first, dy.leading, column.data, column.leading, sum, dw, elements);
        else
            REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, rows, elements, pixels, 1,
                      dy.data + first * dy.leading, dy.leading, column.data, column.leading, sum,
                      dw, elements);
    }
}

/* Parts but the first have sums of their own, which are then added in a fixed order. */
static void NAME(backward_filter)(const struct conv2d_plan *plan, REAL *x, REAL *y, REAL *dw,
                                  REAL *scratch)
{
    const struct conv2d *s = &plan->shape;
    int64_t units = s->groups * plan->slices, size = conv2d_w_size(s);
    REAL *sums = scratch + (size_t)plan->threads * plan->column;
#pragma omp parallel
    {
        REAL *column = scratch + (size_t)omp_get_thread_num() * plan->column;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < units * plan->parts; ++i) {
            int64_t part = i / units;
            REAL *sum = part == 0 ? dw : sums + (part - 1) * size;
            NAME(filter_unit)(plan, i % units, part, x, y, sum, column);
        }
        /* Without a wait: the same thread has the same elements of each part. */
        for (int64_t part = 1; part < plan->parts; ++part) {
            const REAL *sum = sums + (part - 1) * size;
#pragma omp for simd schedule(static) nowait
            for (int64_t i = 0; i < size; ++i)
                dw[i] += sum[i];
        }
    }
}

static void NAME(clear_band)(const struct conv2d *s, int64_t image, int64_t group, struct band band,
                             REAL *dx)
{
    int64_t channels = s->channels / s->groups, rows = band.end - band.begin;
    if (s->layout == LAYOUT_NHWC)
        for (int64_t pixel = 0; pixel < rows * s->width; ++pixel)
            memset(dx + conv2d_x_at(s, image, band.begin, pixel, group * channels), 0,
                   (size_t)channels * sizeof *dx);
    else
        for (int64_t c = group * channels; c < (group + 1) * channels; ++c)
            memset(dx + conv2d_x_at(s, image, band.begin, 0, c), 0,
                   (size_t)(rows * s->width) * sizeof *dx);
}

/* One band of one image: what its outputs, halo included, contribute to its own rows. */
static void NAME(data_band)(const struct conv2d_plan *plan, int64_t image, int64_t group,
                            struct band band, const REAL *w, REAL *y, REAL *dx, REAL *scratch)
{
    const struct conv2d *s = &plan->shape;
    int filters = (int)(s->filters / s->groups), elements = (int)plan->elements;
    const REAL *filter = w + group * filters * plan->elements;
    struct band outputs = band_outputs(s, band);
    if (!plan->in_place)
        NAME(clear_band)(s, image, group, band, dx);
    for (int64_t begin = outputs.begin * s->out_width; begin < outputs.end * s->out_width;
         begin += plan->tile) {
        struct task task = {image, group, {begin, begin + plan->tile}};
        if (task.tile.end > outputs.end * s->out_width)
            task.tile.end = outputs.end * s->out_width;
        int pixels = (int)(task.tile.end - begin);
        struct NAME(matrix) column = NAME(column)(plan, &task, dx, scratch);
        struct NAME(matrix) dy = NAME(view)(plan, &task, y, s->filters);
        if (s->layout == LAYOUT_NHWC)
            REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, pixels, elements, filters, 1,
                      dy.data, dy.leading, filter, elements, 0, column.data, column.leading);
        else
            REAL_GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, elements, pixels, filters, 1, filter,
                      elements, dy.data, dy.leading, 0, column.data, column.leading);
        if (!plan->in_place)
            (s->layout == LAYOUT_NHWC ? NAME(scatter_nhwc) : NAME(scatter_nchw))(
                s, column.data, group, task.tile, band, dx + conv2d_x_at(s, image, 0, 0, 0));
    }
}

static void NAME(backward_data)(const struct conv2d_plan *plan, const REAL *w, REAL *y, REAL *dx,
                                REAL *scratch)
{
    const struct conv2d *s = &plan->shape;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->batch * s->groups * plan->bands; ++i) {
        int64_t index = i % plan->bands, unit = i / plan->bands;
        struct band band = {share_begin(s->height, index, plan->bands),
                            share_begin(s->height, index + 1, plan->bands)};
        REAL *column = scratch + (size_t)omp_get_thread_num() * plan->column;
        NAME(data_band)(plan, unit / s->groups, unit % s->groups, band, w, y, dx, column);
    }
}

static void NAME(im2col)(const struct conv2d_plan *plan, REAL *x, REAL *w, REAL *y, const REAL *b,
                         REAL *scratch)
{
    if (plan->shape.pass == CONV2D_FORWARD)
        NAME(forward)(plan, x, w, y, b, scratch);
    else if (plan->shape.pass == CONV2D_BACKWARD_DATA)
        NAME(backward_data)(plan, w, y, x, scratch);
    else
        NAME(backward_filter)(plan, x, y, w, scratch);
}
