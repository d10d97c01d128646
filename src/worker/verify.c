#include "verify.h"

#include <math.h>
#include <stdlib.h>

#include "reference.h"

/* Work that the reference may take, in multiply-adds: a quarter of a second on one core, which is
 * what a launcher often leaves to the rank of a GPU. */
static const double reference_budget = 1e8;
static const int64_t elements_least = 64, elements_most = 4096;

/* One tensor's elements to compare: where they lie, and what they must be. Owned. */
struct slice {
    enum tensor tensor;
    int64_t count;
    int64_t *offsets;
    double *expected;
};

static enum status slice_create(struct slice *slice, enum tensor tensor, int64_t count,
                                struct error *error)
{
    slice->tensor = tensor;
    slice->count = count;
    slice->offsets = malloc((size_t)count * sizeof *slice->offsets);
    slice->expected = malloc((size_t)count * sizeof *slice->expected);
    if (slice->offsets && slice->expected)
        return STATUS_OK;
    return error_set(error, STATUS_FAILED, "no memory to verify %lld elements", (long long)count);
}

static void slice_destroy(struct slice *slice)
{
    free(slice->offsets);
    free(slice->expected);
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
                           struct work *work, const struct slice *slices, size_t count,
                           enum precision precision, struct record *record, struct error *error)
{
    double worst = 0.0, tolerance = precision_info[precision].tolerance;
    int64_t elements = 0;
    for (size_t i = 0; i < count; ++i) {
        double difference = 0.0, norm = 0.0;
        enum status status =
            slice_compare(device, state, work, &slices[i], &difference, &norm, error);
        if (status)
            return status;
        double relative = sqrt(difference / (norm > 0.0 ? norm : 1.0));
        worst = isnan(relative) || relative > worst ? relative : worst;
        elements += slices[i].count;
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

static const enum tensor conv2d_result[] = {
    [CONV2D_FORWARD] = TENSOR_OUTPUT,
    [CONV2D_BACKWARD_DATA] = TENSOR_INPUT,
    [CONV2D_BACKWARD_FILTER] = TENSOR_WEIGHT,
};

static int64_t conv2d_result_size(const struct conv2d *s)
{
    return s->pass == CONV2D_FORWARD         ? conv2d_y_size(s)
           : s->pass == CONV2D_BACKWARD_DATA ? conv2d_x_size(s)
                                             : conv2d_w_size(s);
}

/* Evenly spread over the tensor, one at a random place in each stretch, the two ends always among
 * them. */
static void spread(int64_t size, uint64_t seed, struct slice *slice)
{
    for (int64_t i = 0; i < slice->count; ++i) {
        int64_t begin = (int64_t)((double)size / (double)slice->count * (double)i);
        int64_t end = (int64_t)((double)size / (double)slice->count * (double)(i + 1));
        int64_t width = end > begin ? end - begin : 1;
        slice->offsets[i] = begin + (int64_t)(fill_mix(seed + (uint64_t)i + 1) % (uint64_t)width);
    }
    slice->offsets[0] = 0;
    slice->offsets[slice->count - 1] = size - 1;
}

static enum status verify_conv2d(const struct device_ops *device, struct device_state *state,
                                 struct work *work, const struct config *config, uint64_t seed,
                                 struct record *record, struct error *error)
{
    struct conv2d s = conv2d_from(config);
    int64_t size = conv2d_result_size(&s);
    double affordable =
        fmax(reference_budget / reference_conv2d_cost(config), (double)elements_least);
    int64_t count = (int64_t)fmin(fmin(affordable, (double)elements_most), (double)size);
    struct slice slice;
    enum status status = slice_create(&slice, conv2d_result[s.pass], count, error);
    if (status == STATUS_OK) {
        spread(size, seed, &slice);
        reference_conv2d(config, seed, slice.offsets, count, slice.expected);
        status = device->run(state, work, s.batch, error);
    }
    if (status == STATUS_OK)
        status = compare(device, state, work, &slice, 1, s.precision, record, error);
    slice_destroy(&slice);
    return status;
}

/* The reference's [sequence][samples][width] as offsets into the device's
 * [sequence][batch][width]. */
static void sample_offsets(const struct lstm *s, int64_t samples, int64_t width, int64_t *offsets)
{
    for (int64_t t = 0; t < s->sequence; ++t)
        for (int64_t i = 0; i < samples * width; ++i)
            *offsets++ = t * s->batch * width + i;
}

static enum status verify_lstm(const struct device_ops *device, struct device_state *state,
                               struct work *work, const struct config *config, uint64_t seed,
                               struct record *record, struct error *error)
{
    struct lstm s = lstm_from(config);
    bool forward = s.pass == LSTM_FORWARD;
    double cost = config_cost(config).flops / 2.0 / (double)s.batch;
    int64_t samples = (int64_t)fmin(fmax(reference_budget / cost, 1.0), (double)s.batch);
    int64_t width = forward ? s.hidden * s.directions : s.features;
    struct slice slices[2] = {{0}, {0}};
    enum status status = slice_create(&slices[0], forward ? TENSOR_OUTPUT : TENSOR_INPUT,
                                      s.sequence * samples * width, error);
    if (status == STATUS_OK && !forward)
        status = slice_create(&slices[1], TENSOR_WEIGHT, lstm_w_size(&s), error);
    if (status == STATUS_OK) {
        sample_offsets(&s, samples, width, slices[0].offsets);
        for (int64_t i = 0; i < slices[1].count; ++i)
            slices[1].offsets[i] = i;
        double *first = slices[0].expected;
        status = reference_lstm(config, seed, samples, forward ? first : NULL,
                                forward ? NULL : first, slices[1].expected, error);
    }
    if (status == STATUS_OK)
        status = device->run(state, work, samples, error);
    if (status == STATUS_OK)
        status = compare(device, state, work, slices, forward ? 1 : 2, s.precision, record, error);
    slice_destroy(&slices[0]);
    slice_destroy(&slices[1]);
    return status;
}

enum status verify_work(const struct device_ops *device, struct device_state *state,
                        struct work *work, const struct config *config, uint64_t seed,
                        struct record *record, struct error *error)
{
    bool lstm = workload_parameter(config->workload, "hidden") >= 0;
    return (lstm ? verify_lstm : verify_conv2d)(device, state, work, config, seed, record, error);
}
