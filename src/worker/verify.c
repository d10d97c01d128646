#include "worker/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* A sixteenth of a second for one core: launchers often leave one core to the rank of a GPU. */
static const double reference_products = 2.5e7;
static const int64_t elements_least = 64, elements_most = 4096;

/* One thread does little work alone: threads that share their cores with other processes may wait
 * for each other longer than the work takes. Work that takes longer is shared, in guided chunks,
 * because elements at a tensor's edges cost less. */
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

/* Returns whether an error exceeds the tolerance, and describes it in `text`. */
static bool errors_exceed(const struct slice_errors *errors, double tolerance, char *text,
                          size_t size)
{
    if (!(errors->norm <= tolerance))
        snprintf(text, size, "relative error %.3g over %lld elements of '%s'", errors->norm,
                 (long long)errors->count, tensor_name[errors->tensor]);
    else if (!(errors->element <= ELEMENT_TOLERANCES * tolerance))
        snprintf(text, size, "element %lld of '%s' is %.6g instead of %.6g: relative error %.3g",
                 (long long)errors->offset, tensor_name[errors->element_tensor], errors->value,
                 errors->expected, errors->element);
    else
        return false;
    return true;
}

/* Records the largest errors of all slices. Each part must meet the tolerances on its own. */
static enum status compare(const struct device_ops *device, struct device_state *state,
                           struct work *work, const struct expectation *expectation,
                           const struct config *config, struct record *record, struct error *error)
{
    struct slice_errors errors = {0};
    int64_t elements = 0;
    for (size_t i = 0; i < expectation->count; ++i) {
        const struct slice *slice = &expectation->slices[i];
        double *values = malloc((size_t)slice->count * sizeof *values);
        if (!values)
            return error_set(error, STATUS_FAILED, "no memory to verify %lld elements",
                             (long long)slice->count);
        enum status status =
            device->read(state, work, slice->tensor, slice->offsets, slice->count, values, error);
        if (status == STATUS_OK)
            slice_compare(slice, values, config_precision(config), &errors);
        free(values);
        TRY(status);
        elements += slice->count;
    }
    const struct tolerance tolerance = config_tolerance(config);
    char text[256];
    record->verify_error = errors.norm;
    record->verify_tolerance = tolerance.right;
    record->verify_element_error = errors.element;
    record->verify_element_tolerance = ELEMENT_TOLERANCES * tolerance.right;
    record->verify_elements = elements;
    record->accuracy[0] = '\0';
    if (errors_exceed(&errors, tolerance.right, text, sizeof text))
        return error_set(error, STATUS_FAILED, "wrong result: %s, allowed %.3g", text,
                         errors.norm <= tolerance.right ? record->verify_element_tolerance
                                                        : record->verify_tolerance);
    /* 0.43: root mean square of the rounding errors of normally distributed values, relative */
    const struct precision_info *stored = precision_result(config_precision(config));
    if (errors_exceed(&errors, tolerance.accurate, text, sizeof text))
        snprintf(record->accuracy, sizeof record->accuracy,
                 "inaccurate: %s; one rounding to %s makes %.2g over all elements", text,
                 stored->name, 0.43 * ldexp(1.0, -stored->significand));
    return STATUS_OK;
}

/* Results that the reference needs as inputs; the first read computes them. */
struct computed {
    const struct device_ops *device;
    struct device_state *state;
    struct work *work;
    const struct config *config;
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

static enum status reference_compute(void *context, const void *results, struct error *error)
{
    const struct computed *computed = context;
    return computed->device->compute(computed->state, computed->config, results, error);
}

void expected_clear(struct expected *expected)
{
    expectation_clear(&expected->expectation);
    *expected = (struct expected){.seed = 0};
}

enum status verify_work(const struct device_ops *device, struct device_state *state,
                        struct work *work, const struct config *config, uint64_t seed,
                        struct expected *expected, struct record *record, struct error *error)
{
    const struct config hot = config_hot(config);
    char configuration[WORKLOAD_TEXT];
    struct computed computed = {device, state, work, config, false};
    const struct reference_request request = {
        .config = config,
        .seed = seed,
        .products = reference_products,
        .least = elements_least,
        .most = elements_most,
        .loop = threads_loop,
        .read = computed_read,
        .context = &computed,
        .compute = device->compute ? reference_compute : NULL,
    };
    const struct expectation *expectation = &expected->expectation;
    if (!config->workload->reference) {
        snprintf(record->error, sizeof record->error, "not verified: %s has no reference",
                 config->workload->name);
        return STATUS_OK;
    }
    config_format(&hot, configuration);
    enum status status = STATUS_OK;
    if (strcmp(expected->configuration, configuration) != 0 || expected->seed != seed) {
        expected_clear(expected);
        status = config->workload->reference(&request, &expected->expectation, error);
        expected->seed = seed;
        if (status == STATUS_OK && !computed.ran) /* else the reference depends on this result */
            memcpy(expected->configuration, configuration, sizeof configuration);
    }
    if (status == STATUS_OK && (!computed.ran || expectation->samples > 0))
        status = device->run(state, work, expectation->samples, error);
    return status ? status : compare(device, state, work, expectation, config, record, error);
}
