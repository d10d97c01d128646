/* Pools on the CPU: forward by oneDNN; forward and backward as loops. */
#include <math.h>

#include "model/workloads/pool.h"
#include "worker/cpu/onednn.h"
#include "worker/cpu/routine.h"

#ifdef REAL

static void NAME(forward)(const struct work *work)
{
    const struct pool *s = work->shape;
    const struct plane in = plane_of(s, s->height, s->width);
    const struct plane out = plane_of(s, s->out_height, s->out_width);
    const bool max = s->operation == POOL_MAX;
    const REAL share = (REAL)1 / (REAL)(s->window_height * s->window_width);
    const REAL *x = work->input[TENSOR_INPUT];
    REAL *y = work->result[TENSOR_OUTPUT];
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < s->batch; ++n)
        for (int64_t h = 0; h < s->out_height; ++h)
            for (int64_t w = 0; w < s->out_width; ++w) {
                struct window window = window_of(s, h, w);
                for (int64_t c = 0; c < s->channels; ++c) {
                    REAL value = max ? -(REAL)INFINITY : 0;
                    for (int64_t a = window.top; a < window.bottom; ++a)
                        for (int64_t b = window.left; b < window.right; ++b) {
                            REAL other = x[plane_at(&in, n, a, b, c)];
                            value = !max ? value + other : other > value ? other : value;
                        }
                    y[plane_at(&out, n, h, w, c)] = max ? value : value * share;
                }
            }
}

/* Adds dy to the gradients of one window of a channel. */
static void NAME(spread)(const struct pool *s, const struct plane *in, const REAL *x,
                         const struct window *window, REAL dy, REAL *dx)
{
    const REAL share = dy / (REAL)(s->window_height * s->window_width);
    REAL largest = -(REAL)INFINITY;
    int64_t place = -1;
    for (int64_t a = window->top; a < window->bottom; ++a)
        for (int64_t b = window->left; b < window->right; ++b) {
            int64_t at = plane_at(in, 0, a, b, 0);
            if (s->operation == POOL_AVERAGE)
                dx[at] += share;
            else if (x[at] > largest) {
                largest = x[at];
                place = at;
            }
        }
    if (place >= 0)
        dx[place] += dy;
}

static void NAME(backward)(const struct work *work)
{
    const struct pool *s = work->shape;
    const struct plane in = plane_of(s, s->height, s->width);
    const struct plane out = plane_of(s, s->out_height, s->out_width);
    const REAL *x = work->input[TENSOR_INPUT], *dy = work->input[TENSOR_OUTPUT];
    REAL *dx = work->result[TENSOR_INPUT];
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < s->batch; ++n)
        for (int64_t c = 0; c < s->channels; ++c) {
            int64_t first = plane_at(&in, n, 0, 0, c);
            for (int64_t i = 0; i < s->height * s->width; ++i)
                dx[first + plane_at(&in, 0, 0, i, 0)] = 0;
            for (int64_t h = 0; h < s->out_height; ++h)
                for (int64_t w = 0; w < s->out_width; ++w) {
                    struct window window = window_of(s, h, w);
                    NAME(spread)
                    (s, &in, x ? x + first : NULL, &window, dy[plane_at(&out, n, h, w, c)],
                     dx + first);
                }
        }
}

#else

/* Strides in elements. */
struct plane {
    int64_t image, line, pixel, channel;
};

static struct plane plane_of(const struct pool *s, int64_t height, int64_t width)
{
    bool nhwc = s->layout == LAYOUT_NHWC;
    int64_t pixel = nhwc ? s->channels : 1;
    return (struct plane){height * width * s->channels, width * pixel, pixel,
                          nhwc ? 1 : height * width};
}

static int64_t plane_at(const struct plane *plane, int64_t n, int64_t h, int64_t w, int64_t c)
{
    return n * plane->image + h * plane->line + w * plane->pixel + c * plane->channel;
}

/* The part of a window that lies within the image. */
struct window {
    int64_t top, bottom, left, right;
};

static struct window window_of(const struct pool *s, int64_t h, int64_t w)
{
    int64_t top = h * s->stride_height - s->pad_height, bottom = top + s->window_height;
    int64_t left = w * s->stride_width - s->pad_width, right = left + s->window_width;
    return (struct window){top < 0 ? 0 : top, bottom > s->height ? s->height : bottom,
                           left < 0 ? 0 : left, right > s->width ? s->width : right};
}

#define REAL_TEMPLATE "worker/cpu/pool.c"
#include "worker/cpu/real.h"

CPU_SHAPE(pool)

static void plain_run(struct work *work, struct trace *trace)
{
    static const struct region regions[2][POOL_OPERATIONS] = {
        [POOL_FORWARD] = {{"pool_max", forward_fp32, forward_fp64},
                          {"pool_average", forward_fp32, forward_fp64}},
        [POOL_BACKWARD] = {{"pool_max_backward", backward_fp32, backward_fp64},
                           {"pool_average_backward", backward_fp32, backward_fp64}},
    };
    const struct pool *s = work->shape;
    region_run(&regions[s->pass][s->operation], work, trace);
}

#ifdef ROOFSWEEP_ONEDNN
static enum status window_plan(struct work *work, struct error *error)
{
    static const struct onednn_roles roles = {
        .inputs = {[TENSOR_INPUT] = ONEDNN_SOURCE},
        .results = {[TENSOR_OUTPUT] = ONEDNN_DESTINATION},
    };
    const struct pool *s = work->shape;
    bool nhwc = s->layout == LAYOUT_NHWC;
    if (s->pass != POOL_FORWARD)
        return error_set(error, STATUS_UNSUPPORTED, "only its forward pass");
    const struct onednn_operation operation = {
        .kind = ONEDNN_POOL,
        .function = s->operation == POOL_MAX ? ONEDNN_MAXIMUM : ONEDNN_AVERAGE,
        .window = {s->window_height, s->window_width},
        .stride = {s->stride_height, s->stride_width},
        .padding = {s->pad_height, s->pad_width},
        .padding_after = {s->after_height, s->after_width},
        .tensors = {[ONEDNN_SOURCE] = onednn_image(s->precision, ONEDNN_PLAIN, nhwc, s->batch,
                                                   s->channels, s->height, s->width),
                    [ONEDNN_DESTINATION] = onednn_image(s->precision, ONEDNN_PLAIN, nhwc, s->batch,
                                                        s->channels, s->out_height, s->out_width)},
    };
    return onednn_plan_operation(work, &operation, &roles, error);
}
#endif

const struct cpu_workload pool_routines = {
    CPU_WORKLOAD(pool),
    .routines =
        {
#ifdef ROOFSWEEP_ONEDNN
            {.implementation = "onednn", ONEDNN_ROUTINE(window_plan)},
#endif
            {.implementation = "plain", .algorithm = "loop", .run = plain_run},
        },
};
#endif
