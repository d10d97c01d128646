/* softmax: the probabilities of each row of a matrix, forward or backward. */
#pragma once

#include "model/workload.h"

extern const struct workload softmax_workload;

enum softmax_pass { SOFTMAX_FORWARD, SOFTMAX_BACKWARD };

/* The shape. All tensors are [rows][columns].
 *   forward   y = exp(x - m) / sum of the row's exp(x - m), where m is the row's largest x
 *   backward  dx = y (dy - sum of the row's y dy), from y and dy
 * The y of a backward pass is random, which the formula allows. Roles of tensors: x, dx and the y
 * of a backward pass are the input, dy and the y of a forward pass are the output. FLOPs for each
 * element: forward 5 (maximum, difference, exponential, sum, quotient), backward 4. Inputs are read
 * once and the output is written once. */
struct softmax {
    int64_t rows, columns;
    enum softmax_pass pass;
    enum precision precision;
};
struct softmax softmax_from(const struct config *config);
