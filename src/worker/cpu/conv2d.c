/* conv2d on the CPU, in two ways.
 *
 * im2col: for a tile of output pixels the input under the kernel is gathered into a column matrix,
 * which stays in a core's own L2, and is multiplied with the filters:
 *
 * - forward: y tile = column * w. A task is a tile.
 *
 * - backward-filter: dw += dy tile * column. A task is a slice of the filters and a part of the tiles.
 *
 * - backward-data: column = dy tile * w, scattered back into dx. A task is a band of dx's rows.
 *
 * No two tasks write to the same place: bands recompute the output rows that they share. The threads
 * of one OpenMP region make all BLAS calls, and each call stays in its thread. So a BLAS with threads
 * of its own never puts a second set of them on the cores.
 *
 * direct: the definition, element by element; conv2d_element.h. */
#include "worker/cpu/conv2d.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "model/workloads/conv2d.h"
#include "model/workloads/conv2d_geometry.h"
#include "worker/cpu/blas.h"

/* How the im2col routine cuts a conv2d into tasks. The direct one needs the shape alone. */
struct conv2d_plan {
    struct conv2d shape;
    int threads;
    bool in_place;         /* 1x1, stride 1, no padding: x is its own column matrix */
    int64_t elements;      /* of one filter, and of one pixel's column */
    int64_t images;        /* 1 where tiles may reach over all of them (nhwc) */
    int64_t pixels;        /* output pixels of one of `images` */
    int64_t tile, tiles;   /* pixels at a time; tiles in `pixels` */
    int64_t bands;         /* backward-data: parts of an image's rows */
    int64_t slices, parts; /* backward-filter: parts of a group's filters, parts of all tiles */
    size_t column;         /* elements of one thread's column matrix */
};

struct tile {
    int64_t begin, end; /* output pixels */
};
struct band {
    int64_t begin, end; /* rows of an image */
};
struct task {
    int64_t image, group;
    struct tile tile;
};

static struct task task_find(const struct conv2d_plan *plan, int64_t index)
{
    int64_t tile = index % plan->tiles;
    return (struct task){
        .image = index / plan->tiles / plan->shape.groups,
        .group = index / plan->tiles % plan->shape.groups,
        .tile = {share_begin(plan->pixels, tile, plan->tiles),
                 share_begin(plan->pixels, tile + 1, plan->tiles)},
    };
}

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

static struct run run_find(const struct conv2d *s, int64_t tap, int64_t pixel, struct tile tile,
                           struct band band)
{
    int64_t out_h = pixel / s->out_width, out_w = pixel % s->out_width;
    int64_t h = out_h * s->stride + tap / s->kernel_width * s->dilation - s->pad_height;
    int64_t offset = out_w * s->stride + tap % s->kernel_width * s->dilation - s->pad_width;
    struct run run = {.count = s->out_width - out_w};
    if (run.count > tile.end - pixel)
        run.count = tile.end - pixel;
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

#define REAL_BITS 32
#include "worker/cpu/conv2d_im2col.h"
#undef REAL_BITS
#define REAL_BITS 64
#include "worker/cpu/conv2d_im2col.h"
#undef REAL_BITS

static int64_t ceil_divide(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* The column matrix takes half of a core's L2, filters and outputs the rest. A tile has at least so
 * many pixels that packing the filters pays. A large enough image has a tile for each thread. */
static void plan_tiles(struct conv2d_plan *plan, double l2, size_t element)
{
    const int64_t worthwhile = 64, least = 16;
    int64_t fit = (int64_t)(l2 / 2.0 / (double)element / (double)plan->elements);
    int64_t even = ceil_divide(plan->images * plan->shape.groups * plan->pixels, plan->threads);
    int64_t tile = clamp(fit, worthwhile, even > least ? even : least);
    plan->tiles = ceil_divide(plan->pixels, clamp(tile, 1, plan->pixels));
    plan->tile = ceil_divide(plan->pixels, plan->tiles);
}

/* The number of bands for which the thread with the most work has the least, halos included. */
static int64_t plan_bands(const struct conv2d_plan *plan)
{
    const struct conv2d *s = &plan->shape;
    int64_t halo = ((s->kernel_height - 1) * s->dilation + s->stride - 1) / s->stride;
    int64_t best = 1, least = INT64_MAX;
    for (int64_t bands = 1; bands <= plan->threads && bands <= s->height; ++bands) {
        int64_t rounds = ceil_divide(s->batch * s->groups * bands, plan->threads);
        int64_t rows = ceil_divide(s->out_height, bands) + (bands > 1 ? halo : 0);
        if (rounds * rows < least) {
            least = rounds * rows;
            best = bands;
        }
    }
    return best;
}

/* Each slice gathers the input again, and each part has a dw of its own. So there are slices first, as
 * long as a slice has enough filters to hide its gather. Then there are as many parts as make the
 * number of tasks a multiple of the threads. */
static void plan_slices(struct conv2d_plan *plan)
{
    const int64_t worthwhile = 64;
    int64_t filters = plan->shape.filters / plan->shape.groups;
    plan->slices = 1;
    for (int64_t slices = 2; slices <= filters / worthwhile; ++slices)
        if (plan->threads % slices == 0)
            plan->slices = slices;
    int64_t a = plan->shape.groups * plan->slices, b = plan->threads;
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    plan->parts = clamp(plan->threads / a, 1, plan->images * plan->tiles);
}

void conv2d_tensors(struct work *work, const struct conv2d *s)
{
    work->size[TENSOR_INPUT] = conv2d_x_size(s);
    work->size[TENSOR_WEIGHT] = conv2d_w_size(s);
    work->size[TENSOR_OUTPUT] = conv2d_y_size(s);
    const enum tensor result[] = {[CONV2D_FORWARD] = TENSOR_OUTPUT,
                                  [CONV2D_BACKWARD_DATA] = TENSOR_INPUT,
                                  [CONV2D_BACKWARD_FILTER] = TENSOR_WEIGHT};
    for (int tensor = 0; tensor < TENSOR_BASIC_COUNT; ++tensor) {
        work->writes[tensor] = tensor == (int)result[s->pass];
        work->reads[tensor] = !work->writes[tensor];
    }
}

static enum status im2col_plan(struct work *work, const struct topology *topology,
                               struct error *error)
{
    struct conv2d_plan *plan = work->plan;
    struct conv2d s = conv2d_from(&work->config);
    bool merged = s.layout == LAYOUT_NHWC && s.pass != CONV2D_BACKWARD_DATA;
    int64_t pixels = s.out_height * s.out_width;
    *plan = (struct conv2d_plan){
        .shape = s,
        .threads = topology->cores,
        .in_place = s.kernel_height == 1 && s.kernel_width == 1 && s.stride == 1 &&
                    s.pad_height == 0 && s.pad_width == 0,
        .elements = s.kernel_height * s.kernel_width * (s.channels / s.groups),
        .images = merged ? 1 : s.batch,
        .pixels = merged ? s.batch * pixels : pixels,
    };
    const int64_t extents[] = {plan->elements, s.channels, s.filters, pixels};
    enum status status = blas_check(extents, sizeof extents / sizeof *extents, error);
    if (status)
        return status;
    conv2d_tensors(work, &s);
    double l2 = topology->cache[LEVEL_L2] / topology->cores;
    plan_tiles(plan, isfinite(l2) ? l2 : 1 << 20, work->element);
    plan->bands = plan_bands(plan);
    plan_slices(plan);
    size_t page = 4096 / work->element;
    if (!plan->in_place)
        plan->column = ((size_t)(plan->tile * plan->elements) + page - 1) / page * page;
    size_t sums = s.pass == CONV2D_BACKWARD_FILTER
                      ? (size_t)(plan->parts - 1) * (size_t)conv2d_w_size(&s)
                      : 0;
    work->scratch_size = ((size_t)plan->threads * plan->column + sums) * work->element;
    return STATUS_OK;
}

static void im2col_run(struct work *work, struct trace *trace)
{
    static const char *const names[] = {[CONV2D_FORWARD] = "conv2d_im2col_forward",
                                        [CONV2D_BACKWARD_DATA] = "conv2d_im2col_backward_data",
                                        [CONV2D_BACKWARD_FILTER] = "conv2d_im2col_backward_filter"};
    double begin = trace_begin(trace);
    (work->precision == PRECISION_FP64 ? im2col_fp64 : im2col_fp32)(work);
    trace_end(trace, names[((const struct conv2d_plan *)work->plan)->shape.pass], begin);
}

const struct routine conv2d_im2col = {
    .workload = &conv2d_workload,
    .implementation = "im2col",
    .algorithm = "im2col+gemm",
    .plan_size = sizeof(struct conv2d_plan),
    .plan = im2col_plan,
    .run = im2col_run,
};

static enum status direct_plan(struct work *work, const struct topology *topology,
                               struct error *error)
{
    (void)topology;
    (void)error;
    struct conv2d *s = work->plan;
    *s = conv2d_from(&work->config);
    conv2d_tensors(work, s);
    return STATUS_OK;
}

static void direct_run(struct work *work, struct trace *trace)
{
    static const char *const names[] = {[CONV2D_FORWARD] = "conv2d_direct_forward",
                                        [CONV2D_BACKWARD_DATA] = "conv2d_direct_backward_data",
                                        [CONV2D_BACKWARD_FILTER] = "conv2d_direct_backward_filter"};
    const struct conv2d *s = work->plan;
    const void *inputs[2] = {NULL, NULL};
    void *result = NULL;
    int64_t size = 0;
    for (int tensor = 0, input = 0; tensor < TENSOR_BASIC_COUNT; ++tensor)
        if (work->reads[tensor]) {
            inputs[input++] = work->input[tensor];
        } else {
            result = work->result[tensor];
            size = work->size[tensor];
        }
    double begin = trace_begin(trace);
    if (work->precision == PRECISION_FP64) {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < size; ++i)
            ((double *)result)[i] = element_fp64(s, inputs[0], inputs[1], i);
    } else {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < size; ++i)
            ((float *)result)[i] = element_fp32(s, inputs[0], inputs[1], i);
    }
    trace_end(trace, names[s->pass], begin);
}

const struct routine conv2d_direct = {
    .workload = &conv2d_workload,
    .implementation = "direct",
    .algorithm = "direct",
    .by_name = true,
    .plan_size = sizeof(struct conv2d),
    .plan = direct_plan,
    .run = direct_run,
};
