/* pool: the largest value or the average of a window that moves over an image, or the gradient of
 * that. */
#pragma once

#include "model/workload.h"
#include "model/workloads/conv2d.h"

extern const struct workload pool_workload;

enum pool_operation { POOL_MAX, POOL_AVERAGE, POOL_OPERATIONS };
enum pool_pass { POOL_FORWARD, POOL_BACKWARD };

/* A pool in numbers. Tensors, dense, in the given layout (nhwc or nchw):
 *   x [batch][height][width][channels]          or [batch][channels][height][width]
 *   y [batch][out_height][out_width][channels]  or [batch][channels][out_height][out_width]
 * Padding is never the largest value; an average takes it for zeros, and divides by all of the
 * window, as PyTorch does unless told otherwise. Of equal values it does not matter which one is
 * the largest. Cost: as many FLOPs for each y as its window has pixels, be they comparisons, or
 * additions and one division; what is needed of x read once, y written once. So a 3x3 window with
 * stride 1 in fp16 has 9/4 FLOP/byte, as in Table 1 of NVIDIA's "GPU Performance Background User's
 * Guide". Backward: dx, of the size of x, from dy, of that of y, and of a maximum from x as well.
 * Each dy is added to the window's largest x; of an average its share to all pixels of the window.
 * Of equal largest values any one may get it: elements that depend on the choice are not compared.
 * As many FLOPs for each dy as its window has pixels; each tensor read or written once. In roles of
 * tensors: x and dx are the input, y and dy the output. */
struct pool {
    int64_t batch, height, width, channels, window_height, window_width;
    int64_t stride, pad_height, pad_width;
    int64_t out_height, out_width; /* 0: there is none */
    enum layout layout;
    enum pool_operation operation;
    enum pool_pass pass;
    enum precision precision;
};
struct pool pool_from(const struct config *config);

int64_t pool_x_size(const struct pool *s);
int64_t pool_y_size(const struct pool *s);
