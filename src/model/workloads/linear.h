/* linear: a fully connected layer, y = f(x W^T + b). */
#pragma once

#include <stdbool.h>

#include "model/workload.h"

extern const struct workload linear_workload;

/* Each in the order of its parameter's words. */
enum linear_pass { LINEAR_FORWARD, LINEAR_BACKWARD_DATA, LINEAR_BACKWARD_WEIGHTS };
enum linear_activation { LINEAR_NONE, LINEAR_RELU, LINEAR_GELU, LINEAR_ACTIVATIONS };
/* Bias and activation in the product's kernel, or in a kernel after it. */
enum linear_fusion { LINEAR_AUTO, LINEAR_FUSED, LINEAR_SEPARATE };

/* A layer in numbers. All matrices are row-major, as frameworks keep them: x [batch][inputs],
 * W [outputs][inputs], b [outputs], y [batch][outputs].
 *   forward            y = f(x W^T + b)
 *   backward-data      dx = dy W
 *   backward-weights   dW = dy^T x, db = the sum of dy over the batch
 * f is the identity in backward passes: an activation's gradient is elementwise work. In fp8 there
 * is forward alone: only there do both factors lie along their sums, as tensor units of compute
 * capability 9.0 take them in 8 bits. The bias is of the result's precision. Cost: 2 FLOPs for each
 * product; with a bias one more for each output, with an activation another one, whatever it is.
 * Each tensor is read or written once. */
struct linear {
    int64_t batch, inputs, outputs;
    bool bias;
    enum linear_activation activation;
    enum linear_fusion fusion;
    enum linear_pass pass;
    enum precision precision;
    const char *implementation;
    bool fast_sums; /* fp8: not widened in between */
};
struct linear linear_from(const struct config *config);
int64_t linear_size(const struct linear *layer, enum tensor tensor); /* elements */
/* There is work beside the product: a bias, its gradient, or an activation. */
bool linear_has_epilogue(const struct linear *layer);
/* gelu in the form with a hyperbolic tangent, which libraries fuse:
 * x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks, Gimpel 2016). */
double linear_activate(enum linear_activation activation, double x);

#define LINEAR_GELU_SCALE 0.797884560802865356 /* sqrt(2 / pi) */
#define LINEAR_GELU_CUBIC 0.044715
