/* pool: the maximum or the average of each window of an image, forward or backward. */
#pragma once

#include "model/workload.h"
#include "model/workloads/conv2d.h"

extern const struct workload pool_workload;

enum pool_operation { POOL_MAX, POOL_AVERAGE, POOL_OPERATIONS };
enum pool_pass { POOL_FORWARD, POOL_BACKWARD };

/* The shape. The tensors are dense, in nhwc or nchw:
 *   x [batch][height][width][channels]          or [batch][channels][height][width]
 *   y [batch][out_height][out_width][channels]  or [batch][channels][out_height][out_width]
 * A maximum ignores padding. An average counts padding as zeros and divides by the pixels of the
 * whole window, which is PyTorch's default.
 *   forward   y from x
 *   backward  dx from dy, and for a maximum also from x. A maximum adds each dy to the dx of the
 *             window's largest x. If several x are the largest, any of them may get dy, so elements
 *             that depend on the choice are not compared. An average adds an equal share of dy to
 *             each pixel of the window.
 * Roles of tensors: x and dx are the input, y and dy the output. Cost: a FLOP for each pixel of
 * each window (a comparison, an addition, or the division). Each tensor is read or written once, x
 * without pixels that no window covers. A 3x3 window with stride 1 in fp16 has 9/4 FLOP/byte, as in
 * Table 1 of NVIDIA's "GPU Performance Background User's Guide". */
struct pool {
    int64_t batch, height, width, channels, window_height, window_width;
    int64_t stride_height, stride_width, pad_height, pad_width, after_height, after_width;
    int64_t out_height, out_width; /* 0: no output */
    enum layout layout;
    enum pool_operation operation;
    enum pool_pass pass;
    enum precision precision;
};
struct pool pool_from(const struct config *config);

int64_t pool_y_size(const struct pool *s);
