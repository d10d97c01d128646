#include "model/workloads/elementwise.h"

#include <math.h>

#include "model/reference.h"

#define SHAPE struct elementwise
/* clang-format off */
static const char *const elementwise_implementation_words[] = {"auto", "cudnn", "onednn", "plain",
                                                               NULL};
static const char *const elementwise_operation_words[] = {"relu", "sigmoid", "tanh", "add", "scale",
                                                          NULL};

static const struct parameter elementwise_parameters[] = {
    WORKLOAD_CACHE,
    WORKLOAD_INTEGER("elements", 68719476736, "16777216", "independent values", INTO(elements)),
    WORKLOAD_IMPLEMENTATION(elementwise_implementation_words),
    WORKLOAD_LAUNCH,
    WORKLOAD_SERIES("operation", elementwise_operation_words, "relu",
                    "function of each value; add: sum of two tensors, scale: times a constant",
                    INTO(operation)),
    WORKLOAD_PRECISION("of the tensors and the multiplications"),
};
/* clang-format on */

WORKLOAD_SHAPE(elementwise)

static struct cost elementwise_cost(const struct config *config)
{
    return (struct cost){.flops = (double)elementwise_from(config).elements};
}

static struct tensors elementwise_tensors(const struct config *config)
{
    const struct elementwise s = elementwise_from(config);
    const double x = (double)s.elements;
    return (struct tensors){
        .read = {[TENSOR_INPUT] = x, [TENSOR_WEIGHT] = s.operation == ELEMENTWISE_ADD ? x : 0},
        .written = {[TENSOR_OUTPUT] = x},
    };
}

static int elementwise_exponent(const struct config *config, enum tensor tensor)
{
    (void)tensor;
    const enum elementwise_operation operation = elementwise_from(config).operation;
    return operation == ELEMENTWISE_SIGMOID || operation == ELEMENTWISE_TANH ? 2 : 0;
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
    const struct elements y = {.tensor = TENSOR_OUTPUT, .products = 1.0, .element = element};
    return reference_elements(request, &s, &y, expectation, error);
}

const struct workload elementwise_workload = {
    .name = "elementwise",
    WORKLOAD_TABLE(elementwise_parameters),
    .without_tensors = "elementwise work",
    .cost = elementwise_cost,
    .tensors = elementwise_tensors,
    .exponent = elementwise_exponent,
    .reference = elementwise_reference,
};
