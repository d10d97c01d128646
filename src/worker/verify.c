#include "worker/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/workloads/conv2d.h"
#include "model/workloads/loop.h"
#include "model/workloads/lstm.h"
#include "model/workloads/matmul.h"
#include "worker/reference.h"

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

/* A result tensor whose elements the reference computes one by one. */
struct result {
    enum tensor tensor;
    int64_t size;
    double cost; /* of one element, in multiply-adds */
    void (*reference)(const struct config *config, uint64_t seed, const int64_t *offsets,
                      int64_t count, double *values);
};

static struct result conv2d_result(const struct config *config)
{
    struct conv2d s = conv2d_from(config);
    struct result result = {.cost = reference_conv2d_cost(config), .reference = reference_conv2d};
    switch (s.pass) {
    case CONV2D_FORWARD:
        result.tensor = TENSOR_OUTPUT;
        result.size = conv2d_y_size(&s);
        break;
    case CONV2D_BACKWARD_DATA:
        result.tensor = TENSOR_INPUT;
        result.size = conv2d_x_size(&s);
        break;
    case CONV2D_BACKWARD_FILTER:
        result.tensor = TENSOR_WEIGHT;
        result.size = conv2d_w_size(&s);
        break;
    }
    return result;
}

static struct result matmul_result(const struct config *config)
{
    struct matmul s = matmul_from(config);
    return (struct result){TENSOR_OUTPUT, s.m * s.n, (double)s.k, reference_matmul};
}

static struct result loop_result(const struct config *config)
{
    struct loop s = loop_from(config);
    return (struct result){TENSOR_OUTPUT, s.tiles * s.tile, (double)s.steps, reference_loop};
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

static enum status verify_elements(const struct device_ops *device, struct device_state *state,
                                   struct work *work, const struct config *config, uint64_t seed,
                                   const struct result *result, struct record *record,
                                   struct error *error)
{
    double affordable = fmax(reference_budget / result->cost, (double)elements_least);
    int64_t count = (int64_t)fmin(fmin(affordable, (double)elements_most), (double)result->size);
    struct slice slice;
    enum status status = slice_create(&slice, result->tensor, count, error);
    if (status == STATUS_OK) {
        spread(result->size, seed, &slice);
        result->reference(config, seed, slice.offsets, count, slice.expected);
        status = device->run(state, work, 0, error);
    }
    if (status == STATUS_OK)
        status = compare(device, state, work, &slice, 1, config_precision(config), record, error);
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
    static const struct {
        const char *workload;
        struct result (*result)(const struct config *config);
    } results[] = {
        {"conv2d", conv2d_result},
        {"matmul", matmul_result},
        {"compute-loop", loop_result},
        {"shared-loop", loop_result},
    };
    for (size_t i = 0; i < sizeof results / sizeof *results; ++i)
        if (strcmp(config->workload->name, results[i].workload) == 0) {
            struct result result = results[i].result(config);
            return verify_elements(device, state, work, config, seed, &result, record, error);
        }
    if (strcmp(config->workload->name, "lstm") == 0)
        return verify_lstm(device, state, work, config, seed, record, error);
    return error_set(error, STATUS_FAILED, "%s has no reference to verify it with",
                     config->workload->name);
}
