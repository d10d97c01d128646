/* softmax: each row of a matrix as probabilities, or the gradient of that. */
#pragma once

#include "model/workload.h"

extern const struct workload softmax_workload;

enum softmax_pass { SOFTMAX_FORWARD, SOFTMAX_BACKWARD };

/* A softmax in numbers; all tensors are [rows][columns].
 *   forward: y = exp(x - m) / sum of the row's exp(x - m), where m is the row's largest x
 *   backward: dx = y (dy - sum of the row's y dy), from y and dy
 * Backward takes any y, and is given random ones. In roles of tensors: x, y of the backward pass
 * and dx are the input, dy and y of the forward pass the output. Cost: forward five FLOPs for each
 * element (maximum, difference, exponential, sum, quotient), backward four; each input read once,
 * the output written once. */
struct softmax {
    int64_t rows, columns;
    enum softmax_pass pass;
    enum precision precision;
};
struct softmax softmax_from(const struct config *config);
