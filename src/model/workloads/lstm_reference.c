#include "model/workloads/lstm_reference.h"

#include <math.h>
#include <stdlib.h>

#include "model/workloads/lstm.h"
#include "model/workloads/lstm_network.h"

/* The reference's [sequence][samples][width] as offsets into the device's
 * [sequence][batch][width]. */
static void sample_offsets(const struct lstm *s, int64_t samples, int64_t width, int64_t *offsets)
{
    for (int64_t t = 0; t < s->sequence; ++t)
        for (int64_t i = 0; i < samples * width; ++i)
            *offsets++ = t * s->batch * width + i;
}

/* The device's output, whose zeros say which units of a relu were off: that a sum is just below zero
 * in fp64 and just above it in the device's precision is no error. The caller owns *seen. */
static enum status output_read(const struct reference_request *request, const struct lstm *s,
                               int64_t samples, double **seen, struct error *error)
{
    int64_t width = s->output * s->directions, count = s->sequence * samples * width;
    int64_t *offsets = malloc((size_t)count * sizeof *offsets);
    double *values = malloc((size_t)count * sizeof *values);
    enum status status = STATUS_OK;
    if (!offsets || !values)
        status =
            error_set(error, STATUS_FAILED, "no memory to verify %lld elements", (long long)count);
    else
        sample_offsets(s, samples, width, offsets);
    if (status == STATUS_OK)
        status = request->read(request->context, TENSOR_OUTPUT, offsets, count, values, error);
    free(offsets);
    if (status)
        free(values);
    else
        *seen = values;
    return status;
}

/* The gates' gradients differ by orders of magnitude, those of the matrices and of the bias as well. */
static enum status weights_divide(const struct lstm *s, struct slice *weights, struct error *error)
{
    const int runs[LSTM_PARTS] = {
        [LSTM_INPUT_MATRIX] = s->cell->gates,
        [LSTM_RECURRENT_MATRIX] = s->cell->gates,
        [LSTM_BIAS] = s->cell->sums,
        [LSTM_PROJECTION] = s->projection > 0,
    };
    int each = 0;
    for (int part = 0; part < LSTM_PARTS; ++part)
        each += runs[part];
    weights->ends = malloc((size_t)(s->layers * s->directions * each) * sizeof *weights->ends);
    if (!weights->ends)
        return error_set(error, STATUS_FAILED, "no memory for the parts of the weights");
    for (int64_t layer = 0; layer < s->layers; ++layer)
        for (int64_t direction = 0; direction < s->directions; ++direction)
            for (int part = 0; part < LSTM_PARTS; ++part)
                for (int run = 1; run <= runs[part]; ++run)
                    weights->ends[weights->parts++] =
                        lstm_w_at(s, layer, direction, (enum lstm_part)part) +
                        lstm_part_size(s, layer, (enum lstm_part)part) / runs[part] * run;
    return STATUS_OK;
}

enum status lstm_reference(const struct reference_request *request, struct expectation *expectation,
                           struct error *error)
{
    struct lstm s = lstm_from(request->config);
    bool forward = s.pass == LSTM_FORWARD;
    double sample = config_cost(request->config).flops / 2.0 / (double)s.batch;
    int64_t samples = (int64_t)fmin(fmax(request->products / sample, 1.0), (double)s.batch);
    int64_t width = forward ? s.output * s.directions : s.features;
    struct slice *first = NULL, *weights = NULL;
    double *seen = NULL;
    enum status status = expectation_add(expectation, forward ? TENSOR_OUTPUT : TENSOR_INPUT,
                                         s.sequence * samples * width, &first, error);
    if (status == STATUS_OK && !forward)
        status = expectation_add(expectation, TENSOR_WEIGHT, lstm_w_size(&s), &weights, error);
    if (status == STATUS_OK && !forward)
        status = weights_divide(&s, weights, error);
    if (status == STATUS_OK && !forward && s.kind == LSTM_RELU)
        status = output_read(request, &s, samples, &seen, error);
    if (status)
        return status;
    sample_offsets(&s, samples, width, first->offsets);
    for (int64_t i = 0; weights && i < weights->count; ++i)
        weights->offsets[i] = i;
    expectation->samples = samples;
    status =
        lstm_network_compute(request->config, request->seed, samples, request->loop, seen,
                             forward ? first->expected : NULL, forward ? NULL : first->expected,
                             weights ? weights->expected : NULL, error);
    free(seen);
    return status;
}
