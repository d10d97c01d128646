#include "model/workloads/linear.h"

#include <limits.h>
#include <math.h>

#include "model/reference.h"

#define SHAPE struct linear
/* clang-format off */
static const char *const linear_activation_words[] = {"none", "relu", "gelu", NULL};
static const char *const linear_fusion_words[] = {"auto", "fused", "separate", NULL};
static const char *const linear_pass_words[] = {"forward", "backward-data", "backward-weights",
                                                NULL};
static const char *const linear_implementation_words[] = {"auto", "cublaslt", "onednn", "plain",
                                                          NULL};

static const struct parameter linear_parameters[] = {
    WORKLOAD_LATER_SERIES("accumulation", workload_accumulations, "wide",
          "fp8 sums; wide: partial sums are added in fp32, fast: all are added in tensor units",
          INTO(fast_sums)),
    WORKLOAD_SERIES("activation", linear_activation_words, "none",
                    "function of each output; forward only", INTO(activation)),
    WORKLOAD_INTEGER("batch", 1048576, "512", "samples", INTO(batch)),
    WORKLOAD_SERIES("bias", workload_no_yes, "yes", "yes: adds a value for each output",
                    INTO(bias)),
    WORKLOAD_CACHE,
    WORKLOAD_SERIES("fusion", linear_fusion_words, "auto",
          "bias and activation in the product's kernel, or after it; auto: fused where it can be",
          INTO(fusion)),
    WORKLOAD_IMPLEMENTATION(linear_implementation_words),
    WORKLOAD_INTEGER("inputs", 1048576, "1024", "input values of a sample", INTO(inputs)),
    WORKLOAD_LAUNCH,
    WORKLOAD_INTEGER("outputs", 1048576, "4096", "output values of a sample", INTO(outputs)),
    WORKLOAD_PASS(linear_pass_words, "what is computed"),
    WORKLOAD_PRECISION_LOW("of the tensors and the multiplications"),
};
/* clang-format on */

WORKLOAD_SHAPE(linear)

bool linear_has_epilogue(const struct linear *layer)
{
    return layer->pass == LINEAR_FORWARD ? layer->bias || layer->activation != LINEAR_NONE
                                         : layer->bias && layer->pass == LINEAR_BACKWARD_WEIGHTS;
}

static double activate(enum linear_activation activation, double x)
{
    if (activation == LINEAR_RELU)
        return x > 0.0 ? x : 0.0;
    if (activation == LINEAR_GELU)
        return 0.5 * x * (1.0 + tanh(LINEAR_GELU_SCALE * (x + LINEAR_GELU_CUBIC * x * x * x)));
    return x;
}

static enum status linear_check(const struct config *config, struct error *error)
{
    struct linear s = linear_from(config);
    if (s.pass != LINEAR_FORWARD && s.activation != LINEAR_NONE)
        return error_set(error, STATUS_UNSUPPORTED,
                         "backward passes need activation=none: the gradient of an activation is "
                         "elementwise work");
    if (s.fusion != LINEAR_AUTO && !linear_has_epilogue(&s))
        return error_set(error, STATUS_UNSUPPORTED,
                         "the pass has no bias and no activation: there is nothing to fuse");
    if (s.fast_sums && s.precision != PRECISION_FP8)
        return error_set(error, STATUS_UNSUPPORTED, "accumulation=fast needs precision=fp8");
    if (s.precision != PRECISION_FP8)
        return STATUS_OK;
    if (s.pass != LINEAR_FORWARD)
        return error_set(error, STATUS_UNSUPPORTED,
                         "fp8 needs pass=forward: backward passes would need transposed copies "
                         "of the tensors");
    return config_check_multiples(config, "inputs", "outputs", error);
}

static struct cost linear_cost(const struct config *config)
{
    struct linear s = linear_from(config);
    bool bias = s.bias && s.pass != LINEAR_BACKWARD_DATA;
    /* FLOPs for each element of y: bias and activation, or the gradient of the bias. */
    double beside = (bias ? 1.0 : 0.0) + (s.activation != LINEAR_NONE ? 1.0 : 0.0);
    return (struct cost){.flops = (double)s.batch * (double)s.outputs *
                                  (2.0 * (double)s.inputs + beside)};
}

static struct tensors linear_tensors(const struct config *config)
{
    const struct linear s = linear_from(config);
    const double batch = (double)s.batch, inputs = (double)s.inputs, outputs = (double)s.outputs;
    const double x = batch * inputs, w = outputs * inputs, y = batch * outputs;
    const double b = s.bias ? outputs : 0;
    const struct tensors passes[] = {
        [LINEAR_FORWARD] = {.read = {[TENSOR_INPUT] = x, [TENSOR_WEIGHT] = w, [TENSOR_BIAS] = b},
                            .written = {[TENSOR_OUTPUT] = y}},
        [LINEAR_BACKWARD_DATA] = {.read = {[TENSOR_OUTPUT] = y, [TENSOR_WEIGHT] = w},
                                  .written = {[TENSOR_INPUT] = x}},
        [LINEAR_BACKWARD_WEIGHTS] = {.read = {[TENSOR_OUTPUT] = y, [TENSOR_INPUT] = x},
                                     .written = {[TENSOR_WEIGHT] = w, [TENSOR_BIAS] = b}},
    };
    return passes[s.pass];
}

/* Weights are drawn from a range near 1 / sqrt(inputs), as networks are initialised. With larger
 * weights a gelu would equal a relu. e4m3 numbers below 2^-6 lose bits. */
static int linear_exponent(const struct config *config, enum tensor tensor)
{
    struct linear s = linear_from(config);
    const int least = s.precision == PRECISION_FP8 ? -6 : INT_MIN;
    int exponent = -(int)lround(log2(sqrt((double)s.inputs)));
    return tensor != TENSOR_WEIGHT ? 0 : exponent > least ? exponent : least;
}

/* ---- the reference ---- */

static double output_element(const struct reference_inputs *in, int64_t offset)
{
    const struct linear *s = in->shape;
    int64_t row = offset / s->outputs, column = offset % s->outputs;
    double sum = s->bias ? input_value(in, TENSOR_BIAS, column) : 0.0;
    for (int64_t i = 0; i < s->inputs; ++i)
        sum += input_value(in, TENSOR_INPUT, row * s->inputs + i) *
               input_value(in, TENSOR_WEIGHT, column * s->inputs + i);
    return activate(s->activation, sum);
}

static double data_element(const struct reference_inputs *in, int64_t offset)
{
    const struct linear *s = in->shape;
    int64_t row = offset / s->inputs, column = offset % s->inputs;
    double sum = 0.0;
    for (int64_t o = 0; o < s->outputs; ++o)
        sum += input_value(in, TENSOR_OUTPUT, row * s->outputs + o) *
               input_value(in, TENSOR_WEIGHT, o * s->inputs + column);
    return sum;
}

static double weight_element(const struct reference_inputs *in, int64_t offset)
{
    const struct linear *s = in->shape;
    int64_t output = offset / s->inputs, input = offset % s->inputs;
    double sum = 0.0;
    for (int64_t sample = 0; sample < s->batch; ++sample)
        sum += input_value(in, TENSOR_OUTPUT, sample * s->outputs + output) *
               input_value(in, TENSOR_INPUT, sample * s->inputs + input);
    return sum;
}

static double bias_element(const struct reference_inputs *in, int64_t offset)
{
    const struct linear *s = in->shape;
    double sum = 0.0;
    for (int64_t sample = 0; sample < s->batch; ++sample)
        sum += input_value(in, TENSOR_OUTPUT, sample * s->outputs + offset);
    return sum;
}

static enum status linear_reference(const struct reference_request *request,
                                    struct expectation *expectation, struct error *error)
{
    const struct linear s = linear_from(request->config);
    const struct elements results[] = {
        [LINEAR_FORWARD] = {TENSOR_OUTPUT, (double)s.inputs, output_element, NULL},
        [LINEAR_BACKWARD_DATA] = {TENSOR_INPUT, (double)s.outputs, data_element, NULL},
        [LINEAR_BACKWARD_WEIGHTS] = {TENSOR_WEIGHT, (double)s.batch, weight_element, NULL},
    };
    const struct elements bias = {TENSOR_BIAS, (double)s.batch, bias_element, NULL};
    TRY(reference_elements(request, &s, &results[s.pass], expectation, error));
    return s.bias && s.pass == LINEAR_BACKWARD_WEIGHTS
               ? reference_elements(request, &s, &bias, expectation, error)
               : STATUS_OK;
}

const struct workload linear_workload = {
    .name = "linear",
    WORKLOAD_TABLE(linear_parameters),
    .check = linear_check,
    .cost = linear_cost,
    .tensors = linear_tensors,
    .exponent = linear_exponent,
    .reference = linear_reference,
};
