/* conv2d: a convolution layer: forward, one or both backward passes, or a training step. */
#pragma once

#include "model/workload.h"

extern const struct workload conv2d_workload;

enum layout { LAYOUT_NHWC, LAYOUT_NCHW };

static inline int64_t int64_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t int64_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

enum conv2d_pass {
    CONV2D_FORWARD,
    CONV2D_BACKWARD_DATA,
    CONV2D_BACKWARD_FILTER,
    CONV2D_BACKWARD, /* the gradients of x, w and the bias */
    CONV2D_TRAINING, /* forward, backward and update */
    CONV2D_PASSES
};
struct conv2d_parts {
    bool forward, data, filter, update;
};
extern const struct conv2d_parts conv2d_parts[CONV2D_PASSES];

enum activation { ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_SIGMOID, ACTIVATION_TANH };
double activation_value(enum activation activation, double x);
/* The derivative at the place where the function's value is `y`. */
double activation_slope(enum activation activation, double y);

/* Whether the kernel of the convolution or a kernel after it applies bias and activation. AUTO: the
 * device decides, and the names of the kernels show it. */
enum fusion { FUSION_AUTO, FUSION_FUSED, FUSION_SEPARATE };

/* For stochastic gradient descent; exact in every precision. */
#define CONV2D_LEARNING_RATE (1.0 / 1024.0)

/* The shape. The tensors are dense, in the layout nhwc or nchw:
 *   x [batch][height][width][channels]                   or [batch][channels][height][width]
 *   w [filters][kernel_height][kernel_width][channels/groups] or [filters][channels/groups][kh][kw]
 *   y [batch][out_height][out_width][filters]            or [batch][filters][out_height][out_width]
 * forward: y from x, w; backward-data: x from y, w; backward-filter: w from x, y.
 *
 * With a bias b [filters] and an activation f:
 *   forward   y = f(z), z = convolution + b of the filter
 *   backward  dz = dy f'(z), dx and dw from dz; db = the sum of a filter's dz. y comes from a
 *             forward pass that is not timed
 *   training  forward, backward, and the update w' = w - CONV2D_LEARNING_RATE dw, b' likewise.
 *             dy is an input. w' is not written over w, so that each iteration does the same work
 * FLOPs: 2 for each multiply-add and each updated element. Addition of the bias, f, f' and db: 1
 * each for every element of y. */
struct conv2d {
    int64_t batch, height, width, channels, filters, kernel_height, kernel_width;
    int64_t stride_height, stride_width, dilation_height, dilation_width, groups;
    int64_t pad_height, pad_width;     /* pixels of zeros above and left of the input */
    int64_t after_height, after_width; /* pixels of zeros below and right of the input */
    int64_t out_height, out_width;
    enum layout layout;
    enum precision precision;
    enum conv2d_pass pass;
    bool bias;
    enum activation activation;
    enum fusion fusion;
    const char *algorithm;
};
struct conv2d conv2d_from(const struct config *config);
/* Returns the number of outputs in one dimension, for a kernel or window of `extent` pixels. Sets
 * the pixels of padding before and after the input. `padding` is a value of the parameter. */
int64_t conv2d_outputs_of(int64_t input, int64_t padding, int64_t extent, int64_t stride,
                          int64_t *before, int64_t *after);

/* Number of elements of a tensor, and (conv2d_x_at and so on) the offset of an element. `c` of
 * conv2d_w_at counts within the filter's group. */
int64_t conv2d_x_size(const struct conv2d *s);
int64_t conv2d_w_size(const struct conv2d *s);
int64_t conv2d_y_size(const struct conv2d *s);
static inline bool conv2d_has_layer(const struct conv2d *s) /* bias or activation */
{
    return s->bias || s->activation != ACTIVATION_NONE;
}
/* Whether the pass reads y, because its gradients contain the derivative of the activation. If so,
 * dz is a tensor of its own. */
bool conv2d_needs_y(const struct conv2d *s);
static inline int64_t image_at(enum layout layout, int64_t height, int64_t width, int64_t channels,
                               int64_t n, int64_t h, int64_t w, int64_t c)
{
    return layout == LAYOUT_NHWC ? ((n * height + h) * width + w) * channels + c
                                 : ((n * channels + c) * height + h) * width + w;
}
static inline int64_t conv2d_x_at(const struct conv2d *s, int64_t n, int64_t h, int64_t w,
                                  int64_t c)
{
    return image_at(s->layout, s->height, s->width, s->channels, n, h, w, c);
}
static inline int64_t conv2d_w_at(const struct conv2d *s, int64_t k, int64_t r, int64_t q,
                                  int64_t c)
{
    int64_t group_channels = s->channels / s->groups;
    return s->layout == LAYOUT_NHWC
               ? ((k * s->kernel_height + r) * s->kernel_width + q) * group_channels + c
               : ((k * group_channels + c) * s->kernel_height + r) * s->kernel_width + q;
}
static inline int64_t conv2d_y_at(const struct conv2d *s, int64_t n, int64_t h, int64_t w,
                                  int64_t k)
{
    return image_at(s->layout, s->out_height, s->out_width, s->filters, n, h, w, k);
}

/* ---- outputs and inputs that a tap of the kernel connects, in one dimension ---- */

/* Sets [*begin, *end), which may be empty, to the outputs below `count` with output * stride +
 * offset in [low, high); `offset` is tap * dilation - padding. */
static inline void conv2d_outputs(int64_t stride, int64_t offset, int64_t low, int64_t high,
                                  int64_t count, int64_t *begin, int64_t *end)
{
    int64_t first = low > offset ? (low - offset + stride - 1) / stride : 0;
    int64_t after = high > offset ? (high - offset + stride - 1) / stride : 0;
    *end = after < count ? after : count;
    *begin = first < *end ? first : *end;
}

/* The output that the tap at `offset` connects with `input`; -1: none. */
static inline int64_t conv2d_output(int64_t stride, int64_t offset, int64_t input, int64_t count)
{
    int64_t scaled = input - offset;
    return scaled >= 0 && scaled % stride == 0 && scaled / stride < count ? scaled / stride : -1;
}
