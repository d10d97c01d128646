/* Elementwise functions on the CPU, by oneDNN or as loops that the compiler vectorises. */
#include <math.h>
#include <string.h>

#include "model/workloads/elementwise.h"
#include "worker/cpu/onednn.h"
#include "worker/cpu/routine.h"

#ifdef REAL
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

#else
#define REAL_TEMPLATE "worker/cpu/elementwise.c"
#include "worker/cpu/real.h"

CPU_SHAPE(elementwise)

static void plain_run(struct work *work, struct trace *trace)
{
    static const struct region regions[ELEMENTWISE_OPERATIONS] = {
        [ELEMENTWISE_RELU] = {"elementwise_relu", relu_fp32, relu_fp64},
        [ELEMENTWISE_SIGMOID] = {"elementwise_sigmoid", sigmoids_fp32, sigmoids_fp64},
        [ELEMENTWISE_TANH] = {"elementwise_tanh", tangents_fp32, tangents_fp64},
        [ELEMENTWISE_ADD] = {"elementwise_add", add_fp32, add_fp64},
        [ELEMENTWISE_SCALE] = {"elementwise_scale", scale_fp32, scale_fp64},
    };
    region_run(&regions[((const struct elementwise *)work->shape)->operation], work, trace);
}

#ifdef ROOFSWEEP_ONEDNN
static enum status function_plan(struct work *work, struct error *error)
{
    static const enum onednn_function functions[ELEMENTWISE_OPERATIONS] = {
        [ELEMENTWISE_RELU] = ONEDNN_RELU,   [ELEMENTWISE_SIGMOID] = ONEDNN_SIGMOID,
        [ELEMENTWISE_TANH] = ONEDNN_TANH,   [ELEMENTWISE_ADD] = ONEDNN_IDENTITY,
        [ELEMENTWISE_SCALE] = ONEDNN_SCALE,
    };
    static const struct onednn_roles roles = {
        .inputs = {[TENSOR_INPUT] = ONEDNN_SOURCE, [TENSOR_WEIGHT] = ONEDNN_SECOND},
        .results = {[TENSOR_OUTPUT] = ONEDNN_DESTINATION},
    };
    const struct elementwise *s = work->shape;
    bool sum = s->operation == ELEMENTWISE_ADD;
    const struct onednn_tensor row = onednn_vector(s->precision, s->elements);
    struct onednn_operation operation = {
        .kind = sum ? ONEDNN_SUM : ONEDNN_ELEMENTWISE,
        .function = functions[s->operation],
        .factor = ELEMENTWISE_FACTOR,
        .tensors = {[ONEDNN_SOURCE] = row, [ONEDNN_DESTINATION] = row},
    };
    if (sum)
        operation.tensors[ONEDNN_SECOND] = row;
    return onednn_plan_operation(work, &operation, &roles, error);
}
#endif

const struct cpu_workload elementwise_routines = {
    CPU_WORKLOAD(elementwise),
    .routines =
        {
#ifdef ROOFSWEEP_ONEDNN
            {.implementation = "onednn", ONEDNN_ROUTINE(function_plan)},
#endif
            {.implementation = "plain", .algorithm = "loop", .run = plain_run},
        },
};
#endif
