/* conv2d on the CPU by oneDNN. The weights lie as the library likes them: forward and backward-data get
 * them packed before, as frameworks do that keep a model; backward-filter gives the gradient back in the
 * user's layout, within its time. The other tensors are the user's: in nhwc the library works on them as
 * they are, in nchw it copies them to blocks of channels and back in every iteration, as PyTorch does. */
#include "worker/cpu/conv2d_onednn.h"

#include "model/workloads/conv2d.h"
#include "worker/cpu/conv2d.h"
#include "worker/cpu/onednn_routine.h"

/* Extents [n][c][h][w], whatever the layout in memory. */
static struct onednn_tensor image_tensor(const struct conv2d *s, int64_t channels, int64_t height,
                                         int64_t width)
{
    bool nhwc = s->layout == LAYOUT_NHWC;
    return (struct onednn_tensor){
        .place = nhwc ? ONEDNN_PLAIN : ONEDNN_REORDERED,
        .precision = s->precision,
        .axes = 4,
        .extents = {s->batch, channels, height, width},
        .strides = {channels * height * width, nhwc ? 1 : height * width,
                    nhwc ? width * channels : width, nhwc ? channels : 1},
    };
}

static struct onednn_tensor filter_tensor(const struct conv2d *s)
{
    int64_t filters = s->filters / s->groups, channels = s->channels / s->groups;
    int64_t taps = s->kernel_height * s->kernel_width;
    bool nhwc = s->layout == LAYOUT_NHWC;
    return (struct onednn_tensor){
        .place = s->pass == CONV2D_BACKWARD_FILTER ? ONEDNN_REORDERED : ONEDNN_PACKED,
        .precision = s->precision,
        .axes = 5,
        .extents = {s->groups, filters, channels, s->kernel_height, s->kernel_width},
        .strides = {filters * channels * taps, channels * taps, nhwc ? 1 : taps,
                    nhwc ? s->kernel_width * channels : s->kernel_width, nhwc ? channels : 1},
    };
}

/* By pass: what stands for x, w and y. */
static const struct {
    enum onednn_pass pass;
    enum onednn_argument arguments[TENSOR_BASIC_COUNT];
} passes[] = {
    [CONV2D_FORWARD] = {ONEDNN_INFERENCE, {ONEDNN_SOURCE, ONEDNN_WEIGHTS, ONEDNN_DESTINATION}},
    [CONV2D_BACKWARD_DATA] = {ONEDNN_BACKWARD_DATA,
                              {ONEDNN_DIFF_SOURCE, ONEDNN_WEIGHTS, ONEDNN_DIFF_DESTINATION}},
    [CONV2D_BACKWARD_FILTER] = {ONEDNN_BACKWARD_WEIGHTS,
                                {ONEDNN_SOURCE, ONEDNN_DIFF_WEIGHTS, ONEDNN_DIFF_DESTINATION}},
};

static const enum onednn_function functions[] = {
    [ACTIVATION_NONE] = ONEDNN_IDENTITY,
    [ACTIVATION_RELU] = ONEDNN_RELU,
    [ACTIVATION_SIGMOID] = ONEDNN_SIGMOID,
    [ACTIVATION_TANH] = ONEDNN_TANH,
};

/* The library adds a bias and applies a function within its convolution, on the way forward. */
static enum status layer_check(const struct conv2d *s, struct error *error)
{
    bool layer = s->bias || s->activation != ACTIVATION_NONE;
    if (s->pass > CONV2D_BACKWARD_FILTER)
        return error_set(error, STATUS_UNSUPPORTED, "no pass of several parts");
    if (layer && s->pass != CONV2D_FORWARD)
        return error_set(error, STATUS_UNSUPPORTED, "no way back through an activation");
    if (layer && s->fusion == FUSION_SEPARATE)
        return error_set(error, STATUS_UNSUPPORTED,
                         "bias and activation are within the convolution, not behind it");
    return STATUS_OK;
}

static enum status convolution_plan(struct work *work, const struct topology *topology,
                                    struct error *error)
{
    (void)topology;
    struct conv2d s = conv2d_from(&work->config);
    enum status status = layer_check(&s, error);
    if (status)
        return status;
    const enum onednn_argument *arguments = passes[s.pass].arguments;
    struct onednn_operation operation = {
        .kind = ONEDNN_CONVOLUTION,
        .pass = passes[s.pass].pass,
        .function = functions[s.activation],
        .stride = {s.stride, s.stride},
        .dilation = {s.dilation, s.dilation},
        .padding = {s.pad_height, s.pad_width},
    };
    operation.tensors[arguments[TENSOR_INPUT]] = image_tensor(&s, s.channels, s.height, s.width);
    operation.tensors[arguments[TENSOR_WEIGHT]] = filter_tensor(&s);
    operation.tensors[arguments[TENSOR_OUTPUT]] =
        image_tensor(&s, s.filters, s.out_height, s.out_width);
    if (s.bias)
        operation.tensors[ONEDNN_BIAS] = (struct onednn_tensor){
            .precision = s.precision, .axes = 1, .extents = {s.filters}, .strides = {1}};
    conv2d_tensors(work, &s);
    struct onednn_roles roles = {{ONEDNN_SOURCE}, {ONEDNN_SOURCE}};
    for (int tensor = 0; tensor < TENSOR_BASIC_COUNT; ++tensor)
        roles.inputs[tensor] = roles.results[tensor] = arguments[tensor];
    roles.inputs[TENSOR_BIAS] = ONEDNN_BIAS;
    return onednn_routine_plan(work, &operation, &roles, error);
}

const struct routine conv2d_onednn = {
    .workload = &conv2d_workload,
    .implementation = "onednn",
    ONEDNN_ROUTINE(convolution_plan),
};
