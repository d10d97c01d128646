#include "model/workloads/softmax.h"

#include <math.h>

#include "model/reference.h"

#define SHAPE struct softmax
/* clang-format off */
static const char *const softmax_implementation_words[] = {"auto", "cudnn", "onednn", "plain",
                                                           NULL};

static const struct parameter softmax_parameters[] = {
    WORKLOAD_CACHE,
    WORKLOAD_INTEGER("columns", 16777216, "4096", "values of a row, whose results add up to 1",
                     INTO(columns)),
    WORKLOAD_IMPLEMENTATION(softmax_implementation_words),
    WORKLOAD_LAUNCH,
    WORKLOAD_PASS(workload_directions, "what is computed"),
    WORKLOAD_PRECISION("of the tensors and the multiplications"),
    WORKLOAD_INTEGER("rows", 1073741824, "4096", "independent rows", INTO(rows)),
};
/* clang-format on */

WORKLOAD_SHAPE(softmax)

static struct cost softmax_cost(const struct config *config)
{
    const struct softmax s = softmax_from(config);
    const double flops = s.pass == SOFTMAX_FORWARD ? 5.0 : 4.0; /* for each element */
    return (struct cost){.flops = flops * (double)s.rows * (double)s.columns};
}

static struct tensors softmax_tensors(const struct config *config)
{
    const struct softmax s = softmax_from(config);
    const double size = (double)s.rows * (double)s.columns;
    struct tensors forward = {.read = {[TENSOR_INPUT] = size}, .written = {[TENSOR_OUTPUT] = size}};
    struct tensors backward = {.read = {[TENSOR_INPUT] = size, [TENSOR_OUTPUT] = size},
                               .written = {[TENSOR_INPUT] = size}};
    return s.pass == SOFTMAX_FORWARD ? forward : backward;
}

/* Inputs are large: probabilities of a row differ by orders of magnitude, as in networks. */
static int softmax_exponent(const struct config *config, enum tensor tensor)
{
    (void)tensor;
    return softmax_from(config).pass == SOFTMAX_FORWARD ? 3 : 0;
}

static double forward_element(const struct reference_inputs *in, int64_t offset)
{
    int64_t columns = ((const struct softmax *)in->shape)->columns,
            row = offset / columns * columns;
    double largest = -INFINITY, sum = 0.0;
    for (int64_t i = row; i < row + columns; ++i)
        largest = fmax(largest, input_value(in, TENSOR_INPUT, i));
    for (int64_t i = row; i < row + columns; ++i)
        sum += exp(input_value(in, TENSOR_INPUT, i) - largest);
    return exp(input_value(in, TENSOR_INPUT, offset) - largest) / sum;
}

/* TENSOR_INPUT is y, TENSOR_OUTPUT is dy. */
static double backward_element(const struct reference_inputs *in, int64_t offset)
{
    int64_t columns = ((const struct softmax *)in->shape)->columns,
            row = offset / columns * columns;
    double sum = 0.0;
    for (int64_t i = row; i < row + columns; ++i)
        sum += input_value(in, TENSOR_INPUT, i) * input_value(in, TENSOR_OUTPUT, i);
    return input_value(in, TENSOR_INPUT, offset) * (input_value(in, TENSOR_OUTPUT, offset) - sum);
}

static enum status softmax_reference(const struct reference_request *request,
                                     struct expectation *expectation, struct error *error)
{
    const double products_of_exponential = 10.0;
    const struct softmax s = softmax_from(request->config);
    bool forward = s.pass == SOFTMAX_FORWARD;
    const struct elements y = {
        .tensor = forward ? TENSOR_OUTPUT : TENSOR_INPUT,
        .products = (double)s.columns * (forward ? products_of_exponential : 1.0),
        .element = forward ? forward_element : backward_element,
    };
    return reference_elements(request, &s, &y, expectation, error);
}

const struct workload softmax_workload = {
    .name = "softmax",
    WORKLOAD_TABLE(softmax_parameters),
    .without_tensors = "a softmax",
    .cost = softmax_cost,
    .tensors = softmax_tensors,
    .exponent = softmax_exponent,
    .reference = softmax_reference,
};
