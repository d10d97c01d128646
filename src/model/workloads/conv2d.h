/* conv2d: one convolution layer, forward or one of its two backward passes. */
#ifndef ROOFSWEEP_WORKLOADS_CONV2D_H
#define ROOFSWEEP_WORKLOADS_CONV2D_H

#include "model/workload.h"

extern const struct workload conv2d_workload;

/* LAYOUT_AUTO: the device takes the faster one, and the record says which. */
enum layout { LAYOUT_NHWC, LAYOUT_NCHW, LAYOUT_AUTO };

enum conv2d_pass { CONV2D_FORWARD, CONV2D_BACKWARD_DATA, CONV2D_BACKWARD_FILTER };

/* A conv2d in numbers. Tensors, dense, in the given layout:
 *   x [batch][height][width][channels]                   or [batch][channels][height][width]
 *   w [filters][kernel_height][kernel_width][channels/groups] or [filters][channels/groups][kh][kw]
 *   y [batch][out_height][out_width][filters]            or [batch][filters][out_height][out_width]
 * forward: y from x, w; backward-data: x from y, w; backward-filter: w from x, y. */
struct conv2d {
    int64_t batch, height, width, channels, filters, kernel_height, kernel_width;
    int64_t stride, pad_height, pad_width, dilation, groups; /* pads: zeros on each side */
    int64_t out_height, out_width;
    enum layout layout;
    enum precision precision;
    enum conv2d_pass pass;
    const char *implementation, *algorithm;
    bool cold; /* cache flushed before each iteration */
};
struct conv2d conv2d_from(const struct config *config);
/* The same configuration in this layout. */
struct config conv2d_with_layout(const struct config *config, enum layout layout);

/* Elements of each tensor, and the offset of one element in it, in elements. `c` of conv2d_w_at
 * counts within the filter's group. */
int64_t conv2d_x_size(const struct conv2d *s);
int64_t conv2d_w_size(const struct conv2d *s);
int64_t conv2d_y_size(const struct conv2d *s);
/* Elements of x that the pass needs: a 1x1 kernel with stride 2 reads a quarter of them. backward-data
 * writes all. */
double conv2d_x_touched(const struct conv2d *s);
static inline int64_t conv2d_x_at(const struct conv2d *s, int64_t n, int64_t h, int64_t w,
                                  int64_t c)
{
    return s->layout == LAYOUT_NHWC ? ((n * s->height + h) * s->width + w) * s->channels + c
                                    : ((n * s->channels + c) * s->height + h) * s->width + w;
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
    return s->layout == LAYOUT_NHWC ? ((n * s->out_height + h) * s->out_width + w) * s->filters + k
                                    : ((n * s->filters + k) * s->out_height + h) * s->out_width + w;
}

#endif
