/* Elementwise loops in one precision: a template, see real.h. Written for elementwise.c. */
#include "worker/cpu/functions_real.h"

#define ELEMENTWISE_LOOP(name, value)                                                              \
    static void NAME(name)(const struct work *work)                                                \
    {                                                                                              \
        const REAL *x = work->input[TENSOR_INPUT], *w = work->input[TENSOR_WEIGHT];                \
        REAL *y = work->result[TENSOR_OUTPUT];                                                     \
        int64_t count = work->size[TENSOR_OUTPUT];                                                 \
        (void)w;                                                                                   \
        _Pragma("omp parallel for simd schedule(static)") for (int64_t i = 0; i < count; ++i)      \
            y[i] = (value);                                                                        \
    }
ELEMENTWISE_LOOP(relu, x[i] > 0 ? x[i] : 0)
ELEMENTWISE_LOOP(sigmoids, NAME(sigmoid)(x[i]))
ELEMENTWISE_LOOP(tangents, NAME(hyperbolic_tangent)(x[i]))
ELEMENTWISE_LOOP(add, x[i] + w[i])
ELEMENTWISE_LOOP(scale, (REAL)ELEMENTWISE_FACTOR *x[i])
#undef ELEMENTWISE_LOOP
