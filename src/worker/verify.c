#include "worker/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "model/reference.h"

/* It takes one core a sixteenth of a second. Launchers often leave one core to the rank of a
 * GPU. */
static const double reference_products = 2.5e7;
static const int64_t elements_least = 64, elements_most = 4096;

/* Threads that share their cores with others wait for each other for longer than little work takes:
 * only what one thread does not finish soon is shared. Guided: elements at a tensor's edges cost
 * less than others. */
static void threads_loop(int64_t count, reference_task *task, void *context)
{
    const double soon = 1e-3; /* s */
    const double end = clock_monotonic() + soon;
    int64_t begin = 0;
    while (begin < count && clock_monotonic() < end)
        task(context, begin++);
    if (begin == count)
        return;
#pragma omp parallel for schedule(guided)
    for (int64_t i = begin; i < count; ++i)
        task(context, i);
}

/* A NaN is the worst: it never passes. */
static bool is_worse(double error, double than)
{
    return isnan(error) || error > than;
}

/* 2-norm of the difference over that of the reference, and the worst element. */
struct errors {
    double norm;
    enum tensor tensor; /* of these elements */
    int64_t count;
    double element;
    enum tensor element_tensor;
    int64_t offset;
    double value, expected;
};

/* Of the elements [begin, end), whose root mean square counts as `least` at least. */
static struct errors part_errors(const struct slice *slice, const double *values, int64_t begin,
                                 int64_t end, double least)
{
    struct errors errors = {
        .tensor = slice->tensor, .count = end - begin, .element_tensor = slice->tensor};
    double difference = 0.0, norm = 0.0;
    for (int64_t i = begin; i < end; ++i) {
        double d = values[i] - slice->expected[i];
        difference += d * d;
        norm += slice->expected[i] * slice->expected[i];
    }
    norm = fmax(norm, least * least * (double)(end - begin));
    const double mean = sqrt((norm > 0.0 ? norm : 1.0) / (double)(end - begin));
    for (int64_t i = begin; i < end; ++i) {
        const double expected = slice->expected[i];
        const double element = fabs(values[i] - expected) / fmax(mean, fabs(expected));
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

/* The larger norm, and the worse element. */
static void errors_join(struct errors *errors, const struct errors *found)
{
    struct errors joined = is_worse(found->element, errors->element) ? *found : *errors;
    const struct errors *norm = is_worse(found->norm, errors->norm) ? found : errors;
    joined.norm = norm->norm;
    joined.tensor = norm->tensor;
    joined.count = norm->count;
    *errors = joined;
}

/* fp16 has fewer digits below 6e-5, where the gradients of a deep network's first layers soon are.
 * There a part counts as at least so large, of its tensor's root mean square. */
static const double least_of_fp16 = 0.01;

static void slice_errors(const struct slice *slice, const double *values, enum precision precision,
                         struct errors *errors)
{
    const size_t parts = slice->ends ? slice->parts : 1;
    double squares = 0.0;
    int64_t begin = 0;
    for (int64_t i = 0; i < slice->count; ++i)
        squares += slice->expected[i] * slice->expected[i];
    const double least =
        precision == PRECISION_FP16 ? least_of_fp16 * sqrt(squares / (double)slice->count) : 0.0;
    for (size_t i = 0; i < parts; ++i) {
        const int64_t end = slice->ends ? slice->ends[i] : slice->count;
        const struct errors found = part_errors(slice, values, begin, end, least);
        errors_join(errors, &found);
        begin = end;
    }
}

static enum status slice_compare(const struct device_ops *device, struct device_state *state,
                                 struct work *work, const struct slice *slice,
                                 enum precision precision, struct errors *errors,
                                 struct error *error)
{
    double *values = malloc((size_t)slice->count * sizeof *values);
    if (!values)
        return error_set(error, STATUS_FAILED, "no memory to verify %lld elements",
                         (long long)slice->count);
    enum status status =
        device->read(state, work, slice->tensor, slice->offsets, slice->count, values, error);
    if (status == STATUS_OK)
        slice_errors(slice, values, precision, errors);
    free(values);
    return status;
}

/* The largest errors over the slices; each part of a tensor is held to the tolerances on its
 * own. */
static enum status compare(const struct device_ops *device, struct device_state *state,
                           struct work *work, const struct expectation *expectation,
                           const struct config *config, struct record *record, struct error *error)
{
    struct errors errors = {0};
    int64_t elements = 0;
    for (size_t i = 0; i < expectation->count; ++i) {
        enum status status = slice_compare(device, state, work, &expectation->slices[i],
                                           config_precision(config), &errors, error);
        if (status)
            return status;
        elements += expectation->slices[i].count;
    }
    record->verify_error = errors.norm;
    record->verify_tolerance = config_tolerance(config);
    record->verify_element_error = errors.element;
    record->verify_element_tolerance = config_element_tolerance(config);
    record->verify_elements = elements;
    if (!(errors.norm <= record->verify_tolerance))
        return error_set(
            error, STATUS_FAILED,
            "wrong result: relative error %.3g over %lld elements of '%s', allowed %.3g",
            errors.norm, (long long)errors.count, tensor_name[errors.tensor],
            record->verify_tolerance);
    if (!(errors.element <= record->verify_element_tolerance))
        return error_set(error, STATUS_FAILED,
                         "wrong result: element %lld of '%s' is %.6g instead of %.6g: relative "
                         "error %.3g, allowed %.3g",
                         (long long)errors.offset, tensor_name[errors.element_tensor], errors.value,
                         errors.expected, errors.element, record->verify_element_tolerance);
    return STATUS_OK;
}

/* Where a layout was chosen, the result lies in that. */
static struct config config_that_ran(const struct config *config, const struct record *record)
{
    struct config ran = *config;
    struct value value;
    struct error unknown;
    int layout = workload_parameter(config->workload, "layout");
    if (layout >= 0 && record->layout_chosen[0] &&
        parameter_parse(&config->workload->parameters[layout], record->layout_chosen, &value,
                        &unknown) == STATUS_OK)
        config_set(&ran, (size_t)layout, &value);
    return ran;
}

/* A result that a reference starts from: computed when it is first asked for. */
struct computed {
    const struct device_ops *device;
    struct device_state *state;
    struct work *work;
    bool ran;
};

static enum status computed_read(void *context, enum tensor tensor, const int64_t *offsets,
                                 int64_t count, double *values, struct error *error)
{
    struct computed *computed = context;
    enum status status = STATUS_OK;
    if (!computed->ran)
        status = computed->device->run(computed->state, computed->work, 0, error);
    computed->ran = status == STATUS_OK;
    if (status == STATUS_OK)
        status = computed->device->read(computed->state, computed->work, tensor, offsets, count,
                                        values, error);
    return status;
}

enum status verify_work(const struct device_ops *device, struct device_state *state,
                        struct work *work, const struct config *config, uint64_t seed,
                        struct record *record, struct error *error)
{
    const struct config ran = config_that_ran(config, record);
    struct computed computed = {device, state, work, false};
    const struct reference_request request = {
        .config = &ran,
        .seed = seed,
        .products = reference_products,
        .least = elements_least,
        .most = elements_most,
        .loop = threads_loop,
        .read = computed_read,
        .context = &computed,
    };
    struct expectation expectation = {.count = 0};
    if (!config->workload->reference) {
        snprintf(record->error, sizeof record->error, "not verified: %s has no reference",
                 config->workload->name);
        return STATUS_OK;
    }
    enum status status = config->workload->reference(&request, &expectation, error);
    if (status == STATUS_OK && (!computed.ran || expectation.samples > 0))
        status = device->run(state, work, expectation.samples, error);
    if (status == STATUS_OK)
        status = compare(device, state, work, &expectation, config, record, error);
    expectation_clear(&expectation);
    return status;
}
