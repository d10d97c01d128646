/* elementwise: a function of each value, such as an activation. */
#pragma once

#include "model/workload.h"

extern const struct workload elementwise_workload;

enum elementwise_operation {
    ELEMENTWISE_RELU,    /* max(x, 0) */
    ELEMENTWISE_SIGMOID, /* 1 / (1 + exp(-x)) */
    ELEMENTWISE_TANH,
    ELEMENTWISE_ADD,   /* x + w */
    ELEMENTWISE_SCALE, /* ELEMENTWISE_FACTOR x */
    ELEMENTWISE_OPERATIONS
};

#define ELEMENTWISE_FACTOR (-0.75) /* exact in every precision */

/* y[i] from x[i] and, for a sum, w[i], for all i below `elements`. Cost: one FLOP for each element,
 * whatever the function; inputs are read once and the output is written once. A relu in fp16 has
 * 1/4 FLOP/byte, as in Table 1 of NVIDIA's "GPU Performance Background User's Guide". */
struct elementwise {
    int64_t elements;
    enum elementwise_operation operation;
    enum precision precision;
};
struct elementwise elementwise_from(const struct config *config);
