#include "worker/cpu/elementwise_onednn.h"

#include "model/workloads/elementwise.h"
#include "worker/cpu/elementwise.h"
#include "worker/cpu/onednn_routine.h"

static const enum onednn_function functions[ELEMENTWISE_OPERATIONS] = {
    [ELEMENTWISE_RELU] = ONEDNN_RELU,   [ELEMENTWISE_SIGMOID] = ONEDNN_SIGMOID,
    [ELEMENTWISE_TANH] = ONEDNN_TANH,   [ELEMENTWISE_ADD] = ONEDNN_IDENTITY,
    [ELEMENTWISE_SCALE] = ONEDNN_SCALE,
};

static enum status function_plan(struct work *work, const struct topology *topology,
                                 struct error *error)
{
    (void)topology;
    static const struct onednn_roles roles = {
        .inputs = {[TENSOR_INPUT] = ONEDNN_SOURCE, [TENSOR_WEIGHT] = ONEDNN_SECOND},
        .results = {[TENSOR_OUTPUT] = ONEDNN_DESTINATION},
    };
    struct elementwise s = elementwise_from(&work->config);
    bool sum = s.operation == ELEMENTWISE_ADD;
    const struct onednn_tensor row = {
        .precision = s.precision, .axes = 1, .extents = {s.elements}, .strides = {1}};
    struct onednn_operation operation = {
        .kind = sum ? ONEDNN_SUM : ONEDNN_ELEMENTWISE,
        .function = functions[s.operation],
        .factor = ELEMENTWISE_FACTOR,
        .tensors = {[ONEDNN_SOURCE] = row, [ONEDNN_DESTINATION] = row},
    };
    if (sum)
        operation.tensors[ONEDNN_SECOND] = row;
    elementwise_tensors(work, &s);
    return onednn_routine_plan(work, &operation, &roles, error);
}

const struct routine elementwise_onednn = {
    .workload = &elementwise_workload,
    .implementation = "onednn",
    ONEDNN_ROUTINE(function_plan),
};
