/* One configuration measured on a made-up device, whose samples are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "worker/measure.h"

struct device_state {
    double time;               /* s, of an iteration */
    double noise;              /* of it, up to so large a fraction, in either direction */
    double straggler;          /* times of the time, every `every`-th sample; 0: none */
    int every, iterations;     /* of a sample */
    int taken, batches;        /* samples; calls */
    bool energy, time_at_last; /* what was called; whether the last of both was `time` */
};

static enum status made_up_prepare(struct device_state *state, const struct config *config,
                                   uint64_t seed, struct work **work, struct record *record,
                                   struct error *error)
{
    (void)config, (void)seed, (void)record, (void)error;
    *work = (struct work *)state;
    return STATUS_OK;
}

static enum status made_up_time(struct device_state *state, struct work *work, bool cold,
                                int samples, double *seconds, struct record *record,
                                struct error *error)
{
    (void)work, (void)cold, (void)error;
    if (!record)
        return STATUS_OK;
    record->sample_iterations = state->iterations;
    for (int i = 0; i < samples; ++i) {
        bool straggles = state->every > 0 && state->taken % state->every == 0;
        seconds[i] =
            state->time * (straggles ? state->straggler : 1 + state->noise * (2 * drand48() - 1));
        ++state->taken;
    }
    ++state->batches;
    state->time_at_last = true;
    return STATUS_OK;
}

static enum status made_up_energy(struct device_state *state, struct work *work, bool cold,
                                  struct record *record, struct error *error)
{
    (void)work, (void)cold, (void)error;
    record->energy = 1;
    state->energy = true;
    state->time_at_last = false;
    return STATUS_OK;
}

static enum status made_up_trace(struct device_state *state, struct work *work, bool cold,
                                 struct record *record, struct error *error)
{
    (void)state, (void)work, (void)cold, (void)record, (void)error;
    return STATUS_OK;
}

static void made_up_release(struct device_state *state, struct work *work)
{
    (void)state, (void)work;
}

static const struct device_ops made_up = {
    .kind = "cpu",
    .prepare = made_up_prepare,
    .time = made_up_time,
    .energy = made_up_energy,
    .trace = made_up_trace,
    .release = made_up_release,
};

static struct request measure_request(void)
{
    struct request request = request_default(REQUEST_MEASURE);
    struct error error;
    assert_int_equal(config_parse("conv2d batch=1", &request.config, &error), STATUS_OK);
    request.measure.counters = COUNTERS_OFF;
    request.measure.verify = false;
    return request;
}

static struct record measured(struct device_state *state, const struct request *request)
{
    struct measured row;
    struct error error;
    srand48(1);
    assert_int_equal(measure_begin(&made_up, state, request, &row, &error), STATUS_OK);
    assert_null(row.work);
    assert_int_equal(row.record.status, RECORD_MEASURED);
    return row.record;
}

static void a_row_has_an_interval(void **state)
{
    (void)state;
    struct device_state device = {.time = 1e-3, .noise = 0.01, .iterations = 7};
    const struct request request = measure_request();
    struct record record = measured(&device, &request);
    assert_int_equal(record.samples, 20);
    assert_int_equal(record.sample_iterations, 7);
    assert_true(record.time_min <= record.time_median_low);
    assert_true(record.time_median_low < record.time_median);
    assert_true(record.time_median < record.time_median_high);
    assert_true(record.time_median_high <= record.time_max);
    assert_int_equal(record.bimodal, 0);
    assert_false(device.energy);
    assert_true(isnan(record.energy));
    record_clear(&record);
}

static void two_modes_are_marked(void **state)
{
    (void)state;
    struct device_state device = {
        .time = 1e-3, .noise = 0.01, .straggler = 3, .every = 2, .iterations = 1};
    struct request request = measure_request();
    struct record record = measured(&device, &request);
    assert_int_equal(record.bimodal, 1);
    record_clear(&record);
    request.measure.iterations = 5;
    record = measured(&device, &request);
    assert_int_equal(record.bimodal, FIELD_MISSING);
    assert_true(isnan(record.time_median_low) && isnan(record.time_median_high));
    record_clear(&record);
}

static struct request adaptive_request(void)
{
    struct request request = measure_request();
    request.measure.iterations = 0;
    request.measure.stop = 0.005;
    request.measure.min_time = 0.01;
    request.measure.max_time = 30;
    return request;
}

/* It stops on the interval that the record tells. A straggler of ten samples would keep an interval
 * of the mean wide for ever. */
static void the_adaptive_rule_stops_on_the_median_s_interval(void **state)
{
    (void)state;
    struct device_state device = {
        .time = 1e-3, .noise = 0.01, .straggler = 50, .every = 10, .iterations = 1};
    const struct request request = adaptive_request();
    struct record record = measured(&device, &request);
    assert_int_equal(record.converged, 1);
    assert_in_range(record.samples, 10, 1000);
    double width = record.time_median_high - record.time_median_low;
    assert_true(width / 2 <= request.measure.stop * record.time_median);
    record_clear(&record);
}

/* min_time is that of all iterations. */
static void samples_of_many_iterations_take_as_long(void **state)
{
    (void)state;
    struct device_state device = {.time = 1e-5, .noise = 1e-6, .iterations = 100};
    struct request request = adaptive_request();
    request.measure.min_time = 0.1;
    struct record record = measured(&device, &request);
    assert_in_range(record.samples, 100, 120);
    record_clear(&record);
}

static void energy_is_taken_when_asked_for(void **state)
{
    (void)state;
    struct device_state device = {.time = 1e-3, .noise = 0.01, .iterations = 1};
    struct request request = measure_request();
    request.measure.energy = true;
    struct record record = measured(&device, &request);
    assert_true(device.energy && !device.time_at_last);
    assert_true(record.energy == 1);
    record_clear(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_has_an_interval),
        cmocka_unit_test(two_modes_are_marked),
        cmocka_unit_test(the_adaptive_rule_stops_on_the_median_s_interval),
        cmocka_unit_test(samples_of_many_iterations_take_as_long),
        cmocka_unit_test(energy_is_taken_when_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
