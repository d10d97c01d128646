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
 * direct and plain: the definition, element by element; conv2d_element.h.
 *
 * A pass of several parts does them in turn (conv2d_step.h): convolutions, and what a layer has beside
 * them (conv2d_layer.h). A fused forward part finishes each tile while it is in the cache. */
#include "worker/cpu/conv2d.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "model/workloads/conv2d.h"
#include "model/workloads/conv2d_geometry.h"
#include "worker/cpu/blas.h"

/* One convolution of a pass, and how im2col cuts it into tasks. */
struct conv2d_plan {
    struct conv2d shape; /* `pass` is one of the first three */
    bool fused;          /* the forward one adds the bias and applies the activation */
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

enum { NAME_FORWARD, NAME_FUSED, NAME_DATA, NAME_FILTER, NAMES };

/* A pass. */
struct conv2d_step {
    struct conv2d shape;
    bool direct;
    const char *const *names; /* of the convolutions in traces */
    struct conv2d_plan forward, data, filter;
    size_t dz; /* in the scratch memory, in elements; where conv2d_has_dz */
};

static bool has_layer(const struct conv2d *s)
{
    return s->bias || s->activation != ACTIVATION_NONE;
}

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
#include "worker/cpu/conv2d_layer.h"
#include "worker/cpu/conv2d_im2col.h"
#include "worker/cpu/conv2d_step.h"
#undef REAL_BITS
#define REAL_BITS 64
#include "worker/cpu/conv2d_layer.h"
#include "worker/cpu/conv2d_im2col.h"
#include "worker/cpu/conv2d_step.h"
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

/* Returns the scratch memory that it needs, in elements. */
static size_t plan_im2col(struct conv2d_plan *plan, const struct conv2d *shape,
                          enum conv2d_pass pass, const struct topology *topology, size_t element)
{
    struct conv2d s = conv2d_bare(shape, pass);
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
    double l2 = topology->cache[LEVEL_L2] / topology->cores;
    plan_tiles(plan, isfinite(l2) ? l2 : 1 << 20, element);
    plan->bands = plan_bands(plan);
    plan_slices(plan);
    size_t page = 4096 / element;
    if (!plan->in_place)
        plan->column = ((size_t)(plan->tile * plan->elements) + page - 1) / page * page;
    size_t sums = s.pass == CONV2D_BACKWARD_FILTER
                      ? (size_t)(plan->parts - 1) * (size_t)conv2d_w_size(&s)
                      : 0;
    return (size_t)plan->threads * plan->column + sums;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The convolutions run one after the other, in the same scratch memory; dz lies behind it. */
static void plan_step(struct work *work, const struct topology *topology)
{
    struct conv2d_step *step = work->plan;
    const struct conv2d *s = &step->shape;
    struct conv2d_parts parts = conv2d_parts[s->pass];
    size_t page = 4096 / work->element, scratch = 0;
    if (parts.forward || conv2d_needs_y(s)) {
        scratch = plan_im2col(&step->forward, s, CONV2D_FORWARD, topology, work->element);
        step->forward.shape.bias = s->bias;
        step->forward.shape.activation = s->activation;
        step->forward.fused = has_layer(s) && s->fusion != FUSION_SEPARATE;
    }
    if (parts.data)
        scratch = larger(
            scratch, plan_im2col(&step->data, s, CONV2D_BACKWARD_DATA, topology, work->element));
    if (parts.filter)
        scratch = larger(scratch, plan_im2col(&step->filter, s, CONV2D_BACKWARD_FILTER, topology,
                                              work->element));
    if (step->direct)
        scratch = 0;
    step->dz = (scratch + page - 1) / page * page;
    if (conv2d_has_dz(s))
        scratch = step->dz + (size_t)conv2d_y_size(s);
    work->scratch_size = scratch * work->element;
}

static enum status im2col_plan(struct work *work, const struct topology *topology,
                               struct error *error)
{
    static const char *const names[NAMES] = {
        [NAME_FORWARD] = "conv2d_im2col_forward",
        [NAME_FUSED] = "conv2d_im2col_forward_fused",
        [NAME_DATA] = "conv2d_im2col_backward_data",
        [NAME_FILTER] = "conv2d_im2col_backward_filter",
    };
    struct conv2d_step *step = work->plan;
    struct conv2d s = conv2d_from(&work->config);
    int64_t elements = s.kernel_height * s.kernel_width * (s.channels / s.groups);
    const int64_t extents[] = {elements, s.channels, s.filters, s.out_height * s.out_width};
    enum status status = blas_check(extents, sizeof extents / sizeof *extents, error);
    if (status)
        return status;
    *step = (struct conv2d_step){.shape = s, .names = names};
    conv2d_tensors(work, &s);
    plan_step(work, topology);
    return STATUS_OK;
}

static enum status direct_plan(struct work *work, const struct topology *topology,
                               struct error *error)
{
    static const char *const names[NAMES] = {
        [NAME_FORWARD] = "conv2d_direct_forward",
        [NAME_FUSED] = "conv2d_direct_forward_fused",
        [NAME_DATA] = "conv2d_direct_backward_data",
        [NAME_FILTER] = "conv2d_direct_backward_filter",
    };
    struct conv2d_step *step = work->plan;
    (void)error;
    *step =
        (struct conv2d_step){.shape = conv2d_from(&work->config), .direct = true, .names = names};
    conv2d_tensors(work, &step->shape);
    plan_step(work, topology);
    return STATUS_OK;
}

static void parts_run(struct work *work, struct conv2d_parts parts, struct trace *trace)
{
    (work->precision == PRECISION_FP64 ? step_fp64 : step_fp32)(work, parts, trace);
}

/* The y that the activation's gradient needs. */
static void step_before(struct work *work)
{
    const struct conv2d_step *step = work->plan;
    if (conv2d_needs_y(&step->shape) && !conv2d_parts[step->shape.pass].forward)
        parts_run(work, (struct conv2d_parts){.forward = true}, NULL);
}

static void step_run(struct work *work, struct trace *trace)
{
    const struct conv2d_step *step = work->plan;
    parts_run(work, conv2d_parts[step->shape.pass], trace);
}

const struct routine conv2d_im2col = {
    .workload = &conv2d_workload,
    .implementation = "im2col",
    .algorithm = "im2col+gemm",
    .plan_size = sizeof(struct conv2d_step),
    .plan = im2col_plan,
    .before = step_before,
    .run = step_run,
};

const struct routine conv2d_direct = {
    .workload = &conv2d_workload,
    .implementation = "direct",
    .algorithm = "direct",
    .by_name = true,
    .plan_size = sizeof(struct conv2d_step),
    .plan = direct_plan,
    .before = step_before,
    .run = step_run,
};

const struct routine conv2d_plain = {
    .workload = &conv2d_workload,
    .implementation = "plain",
    .algorithm = "direct",
    .by_name = true,
    .plan_size = sizeof(struct conv2d_step),
    .plan = direct_plan,
    .before = step_before,
    .run = step_run,
};
