#include "worker/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/reference.h"

/* It takes one core a quarter of a second. Launchers often leave one core to the rank of a GPU. */
static const double reference_products = 1e8;
static const int64_t elements_least = 64, elements_most = 4096;

/* Guided: elements at a tensor's edges cost less than others. */
static void threads_loop(int64_t count, reference_task *task, void *context)
{
#pragma omp parallel for schedule(guided)
    for (int64_t i = 0; i < count; ++i)
        task(context, i);
}

/* Sums of squares over the slice; NaN in the output makes the error NaN, which never passes. */
static enum status slice_compare(const struct device_ops *device, struct device_state *state,
                                 struct work *work, const struct slice *slice, double *difference,
                                 double *norm, struct error *error)
{
    double *values = malloc((size_t)slice->count * sizeof *values);
    if (!values)
        return error_set(error, STATUS_FAILED, "no memory to verify %lld elements",
                         (long long)slice->count);
    enum status status =
        device->read(state, work, slice->tensor, slice->offsets, slice->count, values, error);
    for (int64_t i = 0; status == STATUS_OK && i < slice->count; ++i) {
        double d = values[i] - slice->expected[i];
        *difference += d * d;
        *norm += slice->expected[i] * slice->expected[i];
    }
    free(values);
    return status;
}

/* The largest relative error over the slices; each tensor is held to the tolerance on its own. */
static enum status compare(const struct device_ops *device, struct device_state *state,
                           struct work *work, const struct expectation *expectation,
                           enum precision precision, struct record *record, struct error *error)
{
    double worst = 0.0, tolerance = precision_info[precision].tolerance;
    int64_t elements = 0;
    for (size_t i = 0; i < expectation->count; ++i) {
        const struct slice *slice = &expectation->slices[i];
        double difference = 0.0, norm = 0.0;
        enum status status = slice_compare(device, state, work, slice, &difference, &norm, error);
        if (status)
            return status;
        double relative = sqrt(difference / (norm > 0.0 ? norm : 1.0));
        worst = isnan(relative) || relative > worst ? relative : worst;
        elements += slice->count;
    }
    record->verify_error = worst;
    record->verify_tolerance = tolerance;
    record->verify_elements = elements;
    if (worst <= tolerance)
        return STATUS_OK;
    return error_set(error, STATUS_FAILED,
                     "wrong result: relative error %.3g over %lld elements, allowed %.3g", worst,
                     (long long)elements, tolerance);
}

enum status verify_work(const struct device_ops *device, struct device_state *state,
                        struct work *work, const struct config *config, uint64_t seed,
                        struct record *record, struct error *error)
{
    const struct reference_request request = {
        .config = config,
        .seed = seed,
        .products = reference_products,
        .least = elements_least,
        .most = elements_most,
        .loop = threads_loop,
    };
    struct expectation expectation = {.count = 0};
    if (!config->workload->reference) {
        snprintf(record->error, sizeof record->error, "not verified: %s has no reference",
                 config->workload->name);
        return STATUS_OK;
    }
    enum status status = config->workload->reference(&request, &expectation, error);
    if (status == STATUS_OK)
        status = device->run(state, work, expectation.samples, error);
    if (status == STATUS_OK)
        status =
            compare(device, state, work, &expectation, config_precision(config), record, error);
    expectation_clear(&expectation);
    return status;
}
