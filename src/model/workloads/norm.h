/* norm: batch or layer normalisation, as inference, as training, or backward. */
#pragma once

#include "model/workload.h"

extern const struct workload norm_workload;

enum norm_operation { NORM_BATCH, NORM_LAYER };
enum norm_pass { NORM_FORWARD, NORM_TRAINING, NORM_BACKWARD };

#define NORM_EPSILON 1e-5

/* The shape. x, y, dx and dy are [rows][columns]; gamma and beta have a value for each column. A
 * batch norm has a mean m and a variance v for each column: its columns are the channels of images,
 * its rows the pixels of the batch. A layer norm has a mean and a variance for each row. v is a sum
 * over n values, divided by n. With r = 1 / sqrt(v + NORM_EPSILON), h = (x - m) r, g = dy gamma:
 *   forward   y = h gamma + beta; a batch norm reads m and r of this x
 *   training  y, m and r
 *   backward  dx = r (g - sum(g) / n - h sum(g h) / n), with sums over the n values of a mean;
 *             dgamma = the sum of dy h over all rows; dbeta = the sum of dy over all rows
 * Roles of tensors: x and dx are the input; gamma, dgamma and m the weight; beta, dbeta and r the
 * bias; y and dy the output. All but x, y, dx and dy are fp32 (fp64 if x is fp64). Each tensor is
 * read or written once. FLOPs for each element, batch norm and layer norm: forward 2 (a
 * multiply-add with two values of the column) and 7 (mean 1, difference 1, square and sum 2, y 3),
 * training 6 and 7, backward 8 and 13. */
struct norm {
    int64_t rows, columns;
    enum norm_operation operation;
    enum norm_pass pass;
    enum precision precision;
};
struct norm norm_from(const struct config *config);

int64_t norm_statistics(const struct norm *s);      /* the number of means */
enum precision norm_wide(enum precision precision); /* of gamma, beta, m, r and their gradients */
