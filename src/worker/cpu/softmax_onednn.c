#include "worker/cpu/softmax_onednn.h"

#include "model/workloads/softmax.h"
#include "worker/cpu/onednn_routine.h"
#include "worker/cpu/softmax.h"

static enum status rows_plan(struct work *work, const struct topology *topology,
                             struct error *error)
{
    (void)topology;
    /* On the way back y is the work's input, and so is its gradient. */
    static const struct onednn_roles roles[] = {
        [SOFTMAX_FORWARD] = {.inputs = {[TENSOR_INPUT] = ONEDNN_SOURCE},
                             .results = {[TENSOR_OUTPUT] = ONEDNN_DESTINATION}},
        [SOFTMAX_BACKWARD] =
            {.inputs =
                 {[TENSOR_INPUT] = ONEDNN_DESTINATION, [TENSOR_OUTPUT] = ONEDNN_DIFF_DESTINATION},
             .results = {[TENSOR_INPUT] = ONEDNN_DIFF_SOURCE}},
    };
    struct softmax s = softmax_from(&work->config);
    const struct onednn_tensor matrix = {
        .precision = s.precision,
        .axes = 2,
        .extents = {s.rows, s.columns},
        .strides = {s.columns, 1},
    };
    struct onednn_operation operation = {
        .kind = ONEDNN_SOFTMAX,
        .pass = s.pass == SOFTMAX_FORWARD ? ONEDNN_INFERENCE : ONEDNN_BACKWARD,
        .tensors = {[ONEDNN_DESTINATION] = matrix},
    };
    if (s.pass == SOFTMAX_FORWARD)
        operation.tensors[ONEDNN_SOURCE] = matrix;
    else
        operation.tensors[ONEDNN_DIFF_SOURCE] = operation.tensors[ONEDNN_DIFF_DESTINATION] = matrix;
    softmax_tensors(work, &s);
    return onednn_routine_plan(work, &operation, &roles[s.pass], error);
}

const struct routine softmax_onednn = {
    .workload = &softmax_workload,
    .implementation = "onednn",
    ONEDNN_ROUTINE(rows_plan),
};
