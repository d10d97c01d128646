#include "model/reference.h"

#include <math.h>
#include <stdlib.h>

const char *const tensor_name[TENSOR_COUNT] = {
    [TENSOR_INPUT] = "input",
    [TENSOR_WEIGHT] = "weights",
    [TENSOR_OUTPUT] = "output",
    [TENSOR_BIAS] = "bias",
    [TENSOR_WEIGHT_UPDATED] = "updated weights",
    [TENSOR_BIAS_UPDATED] = "updated bias",
    [TENSOR_VALUE] = "values",
};

void expectation_clear(struct expectation *expectation)
{
    for (size_t i = 0; i < expectation->count; ++i) {
        free(expectation->slices[i].offsets);
        free(expectation->slices[i].expected);
        free(expectation->slices[i].terms);
        free(expectation->slices[i].ends);
    }
    *expectation = (struct expectation){.count = 0};
}

enum status expectation_add(struct expectation *expectation, enum tensor tensor, int64_t count,
                            struct slice **slice, struct error *error)
{
    struct slice added = {.tensor = tensor, .count = count};
    added.offsets = malloc((size_t)count * sizeof *added.offsets);
    added.expected = malloc((size_t)count * sizeof *added.expected);
    if (!added.offsets || !added.expected) {
        free(added.offsets);
        free(added.expected);
        return error_set(error, STATUS_FAILED, "no memory to verify %lld elements",
                         (long long)count);
    }
    *slice = &expectation->slices[expectation->count++];
    **slice = added;
    return STATUS_OK;
}

/* NaN is the worst error and never passes. */
static bool is_worse(double error, double than)
{
    return isnan(error) || error > than;
}

/* Denominator of the element's error. */
static double element_size(const struct slice *slice, int64_t i)
{
    return fmax(fabs(slice->expected[i]), slice->terms ? fabs(slice->terms[i]) : 0.0);
}

/* Errors of [begin, end). The root mean square of element_size counts as at least `least`. */
static struct slice_errors part_errors(const struct slice *slice, const double *values,
                                       int64_t begin, int64_t end, double least)
{
    struct slice_errors errors = {
        .tensor = slice->tensor, .count = end - begin, .element_tensor = slice->tensor};
    double difference = 0.0, norm = 0.0;
    for (int64_t i = begin; i < end; ++i) {
        double d = values[i] - slice->expected[i];
        difference += d * d;
        norm += element_size(slice, i) * element_size(slice, i);
    }
    norm = fmax(norm, least * least * (double)(end - begin));
    const double mean = sqrt((norm > 0.0 ? norm : 1.0) / (double)(end - begin));
    for (int64_t i = begin; i < end; ++i) {
        const double expected = slice->expected[i];
        const double element = fabs(values[i] - expected) / fmax(mean, element_size(slice, i));
        if (!is_worse(element, errors.element))
            continue;
        errors.element = element;
        errors.offset = slice->offsets[i];
        errors.value = values[i];
        errors.expected = expected;
    }
    errors.norm = sqrt(difference / (norm > 0.0 ? norm : 1.0));
    return errors;
}

/* Keeps the larger norm and the worse element of both. */
static void errors_join(struct slice_errors *errors, const struct slice_errors *found)
{
    struct slice_errors joined = is_worse(found->element, errors->element) ? *found : *errors;
    const struct slice_errors *norm = is_worse(found->norm, errors->norm) ? found : errors;
    joined.norm = norm->norm;
    joined.tensor = norm->tensor;
    joined.count = norm->count;
    *errors = joined;
}

/* Lower limit for the root mean square of a part, relative to that of its tensor. fp16 has fewer
 * digits below 6e-5, where the gradients of the first layers of a deep network lie. */
static const double least_of_fp16 = 0.01;

void slice_compare(const struct slice *slice, const double *values, enum precision precision,
                   struct slice_errors *errors)
{
    const size_t parts = slice->ends ? slice->parts : 1;
    double squares = 0.0;
    int64_t begin = 0;
    for (int64_t i = 0; i < slice->count; ++i)
        squares += element_size(slice, i) * element_size(slice, i);
    const double least =
        precision == PRECISION_FP16 ? least_of_fp16 * sqrt(squares / (double)slice->count) : 0.0;
    for (size_t i = 0; i < parts; ++i) {
        const int64_t end = slice->ends ? slice->ends[i] : slice->count;
        const struct slice_errors found = part_errors(slice, values, begin, end, least);
        errors_join(errors, &found);
        begin = end;
    }
}

void places_spread(int64_t *places, int64_t count, int64_t begin, int64_t size, uint64_t seed)
{
    for (int64_t i = 0; i < count; ++i) {
        int64_t from = (int64_t)((double)size / (double)count * (double)i);
        int64_t to = (int64_t)((double)size / (double)count * (double)(i + 1));
        int64_t width = to > from ? to - from : 1;
        places[i] = begin + from + (int64_t)(fill_mix(seed + (uint64_t)i + 1) % (uint64_t)width);
    }
    places[0] = begin;
    places[count - 1] = begin + size - 1;
}

struct reference_inputs reference_inputs(const struct reference_request *request, const void *shape)
{
    struct reference_inputs in = {.shape = shape};
    for (int tensor = 0; tensor < TENSOR_COUNT; ++tensor)
        in.fill[tensor] = config_fill(request->config, request->seed, (enum tensor)tensor);
    return in;
}

struct element_task {
    const struct elements *elements;
    struct reference_inputs inputs;
    struct slice *slice;
};

static void element_compute(void *context, int64_t i)
{
    const struct element_task *task = context;
    const int64_t offset = task->slice->offsets[i];
    task->slice->expected[i] = task->elements->element(&task->inputs, offset);
    if (task->slice->terms)
        task->slice->terms[i] = task->elements->terms(&task->inputs, offset);
}

enum status reference_elements(const struct reference_request *request, const void *shape,
                               const struct elements *elements, struct expectation *expectation,
                               struct error *error)
{
    const struct tensors tensors = request->config->workload->tensors(request->config);
    const double size = tensors.written[elements->tensor];
    double affordable = fmax(request->products / elements->products, (double)request->least);
    double count = fmin(fmin(affordable, (double)request->most), size);
    struct slice *slice = NULL;
    TRY(expectation_add(expectation, elements->tensor, (int64_t)count, &slice, error));
    if (elements->terms && !(slice->terms = malloc((size_t)slice->count * sizeof *slice->terms)))
        return error_set(error, STATUS_FAILED, "no memory to verify %lld elements",
                         (long long)slice->count);
    struct element_task task = {elements, reference_inputs(request, shape), slice};
    places_spread(slice->offsets, slice->count, 0, (int64_t)size, request->seed);
    request->loop(slice->count, element_compute, &task);
    return STATUS_OK;
}
