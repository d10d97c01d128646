/* A fully connected layer on the CPU by oneDNN, with bias and activation within the product. Weights are
 * packed before, on the way forward and to the input's gradient; their own gradient comes back in the
 * user's layout, within the time. */
#include "worker/cpu/linear_onednn.h"

#include "model/workloads/linear.h"
#include "worker/cpu/linear.h"
#include "worker/cpu/onednn_routine.h"

static const enum onednn_function functions[LINEAR_ACTIVATIONS] = {
    [LINEAR_NONE] = ONEDNN_IDENTITY,
    [LINEAR_RELU] = ONEDNN_RELU,
    [LINEAR_GELU] = ONEDNN_GELU,
};

/* By pass: what stands for x, W, y and b. */
static const struct {
    enum onednn_pass pass;
    enum onednn_place weights;
    enum onednn_argument input, weight, output, bias;
} passes[] = {
    [LINEAR_FORWARD] = {ONEDNN_INFERENCE, ONEDNN_PACKED, ONEDNN_SOURCE, ONEDNN_WEIGHTS,
                        ONEDNN_DESTINATION, ONEDNN_BIAS},
    [LINEAR_BACKWARD_DATA] = {ONEDNN_BACKWARD_DATA, ONEDNN_PACKED, ONEDNN_DIFF_SOURCE,
                              ONEDNN_WEIGHTS, ONEDNN_DIFF_DESTINATION, ONEDNN_BIAS},
    [LINEAR_BACKWARD_WEIGHTS] = {ONEDNN_BACKWARD_WEIGHTS, ONEDNN_REORDERED, ONEDNN_SOURCE,
                                 ONEDNN_DIFF_WEIGHTS, ONEDNN_DIFF_DESTINATION, ONEDNN_DIFF_BIAS},
};

static struct onednn_tensor matrix(enum precision precision, enum onednn_place place, int64_t rows,
                                   int64_t columns)
{
    return (struct onednn_tensor){
        .place = place,
        .precision = precision,
        .axes = 2,
        .extents = {rows, columns},
        .strides = {columns, 1},
    };
}

static enum status layer_plan(struct work *work, const struct topology *topology,
                              struct error *error)
{
    (void)topology;
    struct linear s = linear_from(&work->config);
    if (linear_has_epilogue(&s) && s.fusion == LINEAR_SEPARATE)
        return error_set(error, STATUS_UNSUPPORTED,
                         "bias and activation are within the product, not behind it");
    struct onednn_operation operation = {
        .kind = ONEDNN_LINEAR,
        .pass = passes[s.pass].pass,
        .function = functions[s.activation],
    };
    operation.tensors[passes[s.pass].input] = matrix(s.precision, ONEDNN_PLAIN, s.batch, s.inputs);
    operation.tensors[passes[s.pass].weight] =
        matrix(s.precision, passes[s.pass].weights, s.outputs, s.inputs);
    operation.tensors[passes[s.pass].output] =
        matrix(s.precision, ONEDNN_PLAIN, s.batch, s.outputs);
    if (s.bias && s.pass != LINEAR_BACKWARD_DATA)
        operation.tensors[passes[s.pass].bias] = (struct onednn_tensor){
            .precision = s.precision, .axes = 1, .extents = {s.outputs}, .strides = {1}};
    struct onednn_roles roles;
    roles.inputs[TENSOR_INPUT] = roles.results[TENSOR_INPUT] = passes[s.pass].input;
    roles.inputs[TENSOR_WEIGHT] = roles.results[TENSOR_WEIGHT] = passes[s.pass].weight;
    roles.inputs[TENSOR_OUTPUT] = roles.results[TENSOR_OUTPUT] = passes[s.pass].output;
    roles.inputs[TENSOR_BIAS] = roles.results[TENSOR_BIAS] = passes[s.pass].bias;
    linear_tensors(work, &s);
    return onednn_routine_plan(work, &operation, &roles, error);
}

const struct routine linear_onednn = {
    .workload = &linear_workload,
    .implementation = "onednn",
    ONEDNN_ROUTINE(layer_plan),
};
