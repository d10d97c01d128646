#include "model/workloads/elementwise.h"

#include <math.h>

#include "model/reference.h"

/* clang-format off */
static const char *const elementwise_implementation_words[] = {"auto", "cudnn", "onednn", "plain",
                                                               NULL};
static const char *const elementwise_operation_words[] = {"relu", "sigmoid", "tanh", "add", "scale",
                                                          NULL};

static const struct parameter elementwise_parameters[] = {
    WORKLOAD_CACHE,
    WORKLOAD_INTEGER("elements", 68719476736, "16777216", "independent values"),
    WORKLOAD_IMPLEMENTATION(elementwise_implementation_words, "auto: the device's best library"),
    WORKLOAD_LAUNCH,
    WORKLOAD_SERIES("operation", elementwise_operation_words, "relu",
                    "function of each value; add: sum of two tensors, scale: times a constant"),
    WORKLOAD_PRECISION("of the tensors and the multiplications"),
};
/* clang-format on */

static const char *const elementwise_implementations[] = {
    "cudnn: NVIDIA cuDNN, on CUDA devices",
    "onednn: Intel oneDNN, on CPUs",
    "plain: as one would first write it, on CUDA devices and CPUs",
    NULL,
};

static const struct {
    int inputs;   /* tensors */
    int exponent; /* as the member of struct workload */
} operations[ELEMENTWISE_OPERATIONS] = {
    [ELEMENTWISE_RELU] = {1, 0}, [ELEMENTWISE_SIGMOID] = {1, 2}, [ELEMENTWISE_TANH] = {1, 2},
    [ELEMENTWISE_ADD] = {2, 0},  [ELEMENTWISE_SCALE] = {1, 0},
};

struct elementwise elementwise_from(const struct config *config)
{
    return (struct elementwise){
        .elements = config_value(config, "elements").first,
        .operation = (enum elementwise_operation)config_value(config, "operation").first,
        .precision = config_precision(config),
    };
}

int elementwise_inputs(enum elementwise_operation operation)
{
    return operations[operation].inputs;
}

static struct cost elementwise_cost(const struct config *config)
{
    struct elementwise s = elementwise_from(config);
    double elements = (double)s.elements, tensors = operations[s.operation].inputs + 1.0;
    double bytes = tensors * elements * (double)precision_info[s.precision].bytes;
    return (struct cost){.flops = elements, .bytes = bytes, .memory = bytes};
}

static int elementwise_exponent(const struct config *config, enum tensor tensor)
{
    (void)tensor;
    return operations[elementwise_from(config).operation].exponent;
}

static double element(const struct reference_inputs *in, int64_t offset)
{
    double x = input_value(in, TENSOR_INPUT, offset);
    switch (((const struct elementwise *)in->shape)->operation) {
    case ELEMENTWISE_RELU:
        return fmax(x, 0.0);
    case ELEMENTWISE_SIGMOID:
        return 1.0 / (1.0 + exp(-x));
    case ELEMENTWISE_TANH:
        return tanh(x);
    case ELEMENTWISE_ADD:
        return x + input_value(in, TENSOR_WEIGHT, offset);
    default:
        return ELEMENTWISE_FACTOR * x;
    }
}

static enum status elementwise_reference(const struct reference_request *request,
                                         struct expectation *expectation, struct error *error)
{
    const struct elementwise s = elementwise_from(request->config);
    const struct elements y = {
        .tensor = TENSOR_OUTPUT, .size = s.elements, .products = 1.0, .element = element};
    return reference_elements(request, &s, &y, expectation, error);
}

const struct workload elementwise_workload = {
    .name = "elementwise",
    WORKLOAD_TABLE(elementwise_parameters),
    .implementations = elementwise_implementations,
    .without_tensors = "elementwise work",
    .cost = elementwise_cost,
    .exponent = elementwise_exponent,
    .reference = elementwise_reference,
};
