/* linear: a fully connected layer, y = f(x W^T + b). */
#pragma once

#include <stdbool.h>

#include "model/workload.h"

extern const struct workload linear_workload;

enum linear_pass { LINEAR_FORWARD, LINEAR_BACKWARD_DATA, LINEAR_BACKWARD_WEIGHTS };
enum linear_activation { LINEAR_NONE, LINEAR_RELU, LINEAR_GELU, LINEAR_ACTIVATIONS };
/* Whether the kernel of the product or a kernel after it applies bias and activation. */
enum linear_fusion { LINEAR_AUTO, LINEAR_FUSED, LINEAR_SEPARATE };

/* The shape. All matrices are row-major, as in frameworks: x [batch][inputs], W [outputs][inputs],
 * b [outputs], y [batch][outputs].
 *   forward            y = f(x W^T + b)
 *   backward-data      dx = dy W
 *   backward-weights   dW = dy^T x, db = the sum of dy over the batch
 * f is the identity in backward passes, because an activation's gradient is elementwise work. fp8
 * has only the forward pass: tensor units of compute capability 9.0 need 8-bit factors that are
 * contiguous along their sums. The bias has the result's precision. Cost: 2 FLOPs for each
 * multiply-add, 1 for each bias that is added and 1 for each activation. Each tensor is read or
 * written once. */
struct linear {
    int64_t batch, inputs, outputs;
    bool bias;
    enum linear_activation activation;
    enum linear_fusion fusion;
    enum linear_pass pass;
    enum precision precision;
    bool fast_sums; /* fp8: sums stay in tensor units, without partial sums in fp32 */
};
struct linear linear_from(const struct config *config);
/* Whether the pass has a bias, the gradient of a bias, or an activation. */
bool linear_has_epilogue(const struct linear *layer);

/* gelu is the tanh form, which libraries fuse: x/2 (1 + tanh(SCALE (x + CUBIC x^3))) (Hendrycks,
 * Gimpel 2016). */
#define LINEAR_GELU_SCALE 0.797884560802865356 /* sqrt(2 / pi) */
#define LINEAR_GELU_CUBIC 0.044715
