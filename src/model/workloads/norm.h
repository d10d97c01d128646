/* norm: batch or layer normalisation, as inference, as training, or backward. */
#pragma once

#include "model/workload.h"

extern const struct workload norm_workload;

enum norm_operation { NORM_BATCH, NORM_LAYER };
enum norm_pass { NORM_FORWARD, NORM_TRAINING, NORM_BACKWARD };

#define NORM_EPSILON 1e-5

/* A norm in numbers. x, y, dx and dy are [rows][columns]; gamma and beta have a value for each
 * column. Mean m and variance v (of all values, not of a sample) are those of a column over all
 * rows in a batch norm, whose columns are an image's channels and whose rows the batch's pixels,
 * and of a row in a layer norm. With r = 1 / sqrt(v + NORM_EPSILON) and n values of a mean:
 *   forward:  y = (x - m) r gamma + beta. Of a batch norm m and r are inputs: those of this x.
 *   training: y, and m and r, which the backward pass needs backward: from x, dy, m and r, with h =
 *   (x - m) r, sums over the same n values, and g = dy gamma,
 *             dx = r (g - sum(g) / n - h sum(g h) / n), dgamma = sum over rows of dy h, dbeta = of
 *             dy
 * In roles of tensors: x and dx are the input; gamma, dgamma and m the weight; beta, dbeta and r
 * the bias; y and dy the output. All but x, y, dx and dy are fp32, of fp64 fp64. FLOPs for each
 * element: forward 2 of a batch norm, which is one multiply-add with what is known of its column,
 * and 7 of a layer norm (mean 1, difference 1, square and sum 2, y 3); training 6 and 7; backward 8
 * and 13. Each tensor once. */
struct norm {
    int64_t rows, columns;
    enum norm_operation operation;
    enum norm_pass pass;
    enum precision precision;
};
struct norm norm_from(const struct config *config);

int64_t norm_statistics(const struct norm *s);      /* how many m there are */
enum precision norm_wide(enum precision precision); /* of gamma, beta, m, r and their gradients */
