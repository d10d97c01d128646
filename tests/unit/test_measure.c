/* Measures configurations, and counts them together, on a made-up device with known samples and
 * counts. The count of a row is the batch size of its configuration. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/batch.h"
#include "worker/measure.h"

struct work {
    double value;
    int number; /* among the works of the device, from 0 */
};

struct device_state {
    double time;               /* s of an iteration */
    double noise;              /* largest relative deviation, in either direction */
    double straggler;          /* factor of the time in every `every`-th sample; 0: none */
    int every, iterations;     /* iterations of a sample */
    int taken;                 /* samples so far */
    bool energy, time_at_last; /* `energy` was called; `time` was called after it */

    double other_placement;   /* fraction by which each further work is slower */
    double throttled, capped; /* batch size of rows with a lower clock; of rows at the power cap */
    int prepared;             /* works so far */
    int works, most;          /* works now; largest number at a time */
    int room;                 /* number of works beside which one more fits */
    int collections;          /* calls of count_hardware */
    size_t counted[64];       /* rows of each call */
    double never;             /* value of a row that makes its collection fail */
    enum status failure;      /* status of that collection; STATUS_OK: its rows get a refusal */
    double crowded;           /* batch size of a row that cannot be prepared beside other rows */
    bool lost;                /* the next collection loses the device */
    double pause;             /* s, shortest duration of each step */
    double own;               /* s, charged for counting a row, for each image of its batch */
    int hashes, flip;         /* hashes so far; number of the hash that differs; 0: none */
};

static void pause_for(const struct device_state *state)
{
    double end = clock_monotonic() + state->pause;
    while (clock_monotonic() < end)
        continue;
}

static enum status made_up_prepare(struct device_state *state, const struct config *config,
                                   uint64_t seed, struct work **work, struct record *record,
                                   struct error *error)
{
    pause_for(state);
    char text[WORKLOAD_TEXT];
    config_format(config, text);
    double value = strtod(strstr(text, " batch=") + strlen(" batch="), NULL);
    if (value == state->crowded && state->works > 0)
        return error_set(error, STATUS_UNSUPPORTED, "no room");
    *work = malloc(sizeof **work);
    (*work)->value = value;
    (*work)->number = state->prepared++;
    state->most = ++state->works > state->most ? state->works : state->most;
    return STATUS_OK;
}

static enum status made_up_time(struct device_state *state, struct work *work, bool cold,
                                int samples, double *seconds, struct record *record,
                                struct error *error)
{
    pause_for(state);
    const double time = state->time * (1 + state->other_placement * work->number);
    if (!record)
        return STATUS_OK;
    /* Nothing comes from an earlier placement. */
    assert_true(record->host_paced == FIELD_MISSING || record->sm_clock_counted == work->number);
    record->host_paced = 1;
    record->sample_iterations = state->iterations;
    record->sm_clock_counted = work->number;
    record->sm_clock_free = work->number + (work->value == state->throttled);
    record->throttle_reasons = work->value == state->capped ? THROTTLED_BY_POWER : 0;
    for (int i = 0; i < samples; ++i) {
        bool straggles = state->every > 0 && state->taken % state->every == 0;
        seconds[i] = time * (straggles ? state->straggler : 1 + state->noise * (2 * drand48() - 1));
        ++state->taken;
    }
    state->time_at_last = true;
    return STATUS_OK;
}

static enum status made_up_energy(struct device_state *state, struct work *work, bool cold,
                                  struct record *record, struct error *error)
{
    pause_for(state);
    assert_int_equal(record->launches, 1); /* the trace precedes the counting */
    record->energy = 1;
    state->energy = true;
    state->time_at_last = false;
    return STATUS_OK;
}

static enum status made_up_trace(struct device_state *state, struct work *work, bool cold,
                                 struct record *record, struct error *error)
{
    pause_for(state);
    record->launches = 1;
    return STATUS_OK;
}

static bool made_up_has_room(struct device_state *state, const struct config *config)
{
    return state->works <= state->room;
}

static enum status made_up_count(struct device_state *state, const struct countable *rows,
                                 size_t count, struct error *error)
{
    bool spoilt = false;
    pause_for(state);
    state->counted[state->collections++] = count;
    if (state->lost)
        return error_set(error, STATUS_DEVICE, "off the bus");
    for (size_t i = 0; i < count; ++i)
        spoilt |= rows[i].work->value == state->never;
    if (spoilt && state->failure)
        return error_set(error, state->failure, "it cannot be counted");
    for (size_t i = 0; i < count; ++i) {
        rows[i].record->flops_counted = spoilt ? NAN : rows[i].work->value;
        record_add_part(rows[i].record, PART_COUNTS, state->own * rows[i].work->value);
        outcome_set(&rows[i].record->counters, spoilt ? COUNTED_INCOMPLETE : COUNTED_YES,
                    spoilt ? "one was dropped" : NULL);
    }
    return STATUS_OK;
}

static enum status made_up_hash(struct device_state *state, struct work *work, uint64_t *hash,
                                struct error *error)
{
    *hash = 0xabcu + (++state->hashes == state->flip);
    return STATUS_OK;
}

static void made_up_release(struct device_state *state, struct work *work)
{
    state->works -= work != NULL;
    free(work);
}

static const struct device_ops made_up = {
    .kind = "cpu",
    .prepare = made_up_prepare,
    .time = made_up_time,
    .energy = made_up_energy,
    .trace = made_up_trace,
    .has_room = made_up_has_room,
    .count_hardware = made_up_count,
    .hash = made_up_hash,
    .release = made_up_release,
};

/* ---- one row ---- */

static struct request measure_request(void)
{
    struct request request = request_default(REQUEST_MEASURE);
    assert_ok(config_parse("conv2d batch=1", &request.config, &failure));
    request.measure.counters = COUNTERS_OFF;
    request.measure.verify = false;
    return request;
}

static struct record measured(struct device_state *state, const struct request *request)
{
    struct measured row;
    srand48(1);
    assert_ok(
        measure_begin(&made_up, state, request, &(struct expected){.seed = 0}, &row, &failure));
    assert_null(row.work);
    assert_int_equal(row.record.status, RECORD_MEASURED);
    return row.record;
}

TEST(a_row_has_an_interval)
{
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

TEST(two_modes_are_marked)
{
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

/* The rule uses the recorded interval of the median. An interval of the mean would stay wide
 * because of the stragglers. */
TEST(the_adaptive_rule_uses_the_interval_of_the_median)
{
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

/* min_time includes all iterations. */
TEST(samples_of_many_iterations_take_as_long)
{
    struct device_state device = {.time = 1e-5, .noise = 1e-6, .iterations = 100};
    struct request request = adaptive_request();
    request.measure.min_time = 0.1;
    struct record record = measured(&device, &request);
    assert_in_range(record.samples, 100, 120);
    record_clear(&record);
}

TEST(energy_is_measured_on_request)
{
    struct device_state device = {.time = 1e-3, .noise = 0.01, .iterations = 1};
    struct request request = measure_request();
    request.measure.energy = true;
    struct record record = measured(&device, &request);
    assert_true(device.energy && !device.time_at_last);
    assert_true(record.energy == 1);
    record_clear(&record);
}

/* The row has the time and clock of the placement with the median time, and the spread between
 * placements, which needs several placements. Only a row at the power cap gets a run for its
 * energy. */
TEST(a_row_is_measured_in_placements)
{
    static const struct {
        int repeat, room, placements; /* placements: requested, that fit, measured */
    } cases[] = {{1, 9, 1}, {5, 9, 5}, {4, 9, 4}, {5, 2, 3}, {5, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct device_state device = {.time = 1e-3,
                                      .noise = 1e-3,
                                      .iterations = 1,
                                      .other_placement = 0.1,
                                      .room = cases[i].room};
        struct request request = measure_request();
        request.measure.repeat = cases[i].repeat;
        struct record record = measured(&device, &request);
        const int last = cases[i].placements - 1, middle = last / 2;
        assert_int_equal(record.placements, cases[i].repeat > 1 ? last + 1 : FIELD_MISSING);
        assert_int_equal(record.samples, 20 * (last + 1));
        assert_int_equal(record.sample_count, record.samples);
        assert_true(record.sm_clock_counted == middle);
        assert_true(fabs(record.time_median / 1e-3 - (1 + 0.1 * middle)) < 1e-3);
        assert_true(fabs(record.time_median_low / 1e-3 - 1) < 1e-3);
        assert_true(fabs(record.time_median_high / 1e-3 - (1 + 0.1 * last)) < 1.5e-3);
        assert_true(fabs(record.sample[record.samples - 1] / 1e-3 - (1 + 0.1 * last)) < 2e-3);
        assert_int_equal(record.bimodal, 0);
        assert_false(device.energy);
        assert_int_equal(device.works, 0);
        record_clear(&record);
        device.throttled = 1;
        record = measured(&device, &request);
        assert_false(device.energy);
        record_clear(&record);
        device.capped = 1;
        record = measured(&device, &request);
        assert_int_equal(device.energy, cases[i].repeat > 1);
        record_clear(&record);
    }
}

TEST(bits_of_the_iterations_are_compared)
{
    for (int flip = 0; flip <= 2; ++flip) {
        struct device_state device = {.time = 1e-3, .iterations = 1, .flip = flip};
        const struct request request = measure_request();
        struct record record = measured(&device, &request);
        assert_string_equal(record.output_hash, flip ? "varies" : "0000000000000abc");
        assert_int_equal(device.hashes, 2);
        record_clear(&record);
    }
}

/* ---- rows that wait for their counters ---- */

static const struct device_state counting = {.time = 1e-3, .iterations = 1, .room = 9};

/* Returns whether the row waits. Otherwise the caller clears the record. */
static bool measure(struct batch *batch, struct device_state *device, int value, bool later,
                    struct record *record)
{
    char text[64];
    bool waits = false;
    struct request request = request_default(REQUEST_MEASURE);
    snprintf(text, sizeof text, "conv2d batch=%d", value);
    assert_ok(config_parse(text, &request.config, &failure));
    request.measure.verify = false;
    request.count_later = later;
    record_init(record);
    assert_ok(batch_measure(batch, device, &request, record, &waits, &failure));
    return waits;
}

static void assert_counted(struct record *record, double value)
{
    char text[64];
    snprintf(text, sizeof text, " batch=%g ", value);
    assert_int_equal(record->status, RECORD_MEASURED);
    assert_int_equal(record->counters.code, COUNTED_YES);
    assert_says(record->configuration, text);
    assert_true(record->flops_counted == value && record->time_median == 1e-3);
    record_clear(record);
}

static struct record taken(struct batch *batch, struct device_state *device)
{
    struct record record;
    assert_ok(batch_take(batch, device, &record, &failure));
    return record;
}

static void assert_waits(struct batch *batch, struct device_state *device, int value)
{
    struct record unused;
    assert_true(measure(batch, device, value, true, &unused));
}

static void assert_all_wait(struct batch *batch, struct device_state *device, int count)
{
    for (int i = 1; i <= count; ++i)
        assert_waits(batch, device, i);
}

static void assert_all_counted(struct batch *batch, struct device_state *device, int count)
{
    for (int i = 1; i <= count; ++i) {
        struct record record = taken(batch, device);
        assert_counted(&record, i);
    }
}

static void assert_empty(struct batch *batch, struct device_state *device)
{
    struct record record;
    assert_int_equal(batch_take(batch, device, &record, &failure), STATUS_USAGE);
    assert_int_equal(device->works, 0);
}

/* Counts do not depend on the order of rows. */
TEST(rows_are_counted_together)
{
    static const int orders[][4] = {{1, 2, 3, 4}, {4, 3, 2, 1}, {3, 1, 4, 2}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; ++i) {
        struct device_state device = counting;
        struct batch *batch = batch_create(&made_up);
        for (int j = 0; j < 4; ++j)
            assert_waits(batch, &device, orders[i][j]);
        assert_int_equal(device.collections, 0);
        for (int j = 0; j < 4; ++j) {
            struct record record = taken(batch, &device);
            assert_counted(&record, orders[i][j]);
        }
        assert_int_equal(device.collections, 1);
        assert_int_equal(device.counted[0], 4);
        assert_empty(batch, &device);
        batch_destroy(batch, &device);
    }
}

/* Each step takes 1 ms or more. Two rows share the time of counting, less what each row took. */
TEST(wall_time_is_recorded_by_part)
{
    static const double least[PART_COUNT] = {[PART_PREPARE] = 1e-3,
                                             [PART_TIMING] = 2e-3, /* warm-up and samples */
                                             [PART_TRACE] = 1e-3,
                                             [PART_COUNTS] = 0.3e-3};
    struct device_state device = counting;
    struct batch *batch = batch_create(&made_up);
    device.pause = 1e-3;
    device.own = 0.3e-3;
    assert_all_wait(batch, &device, 2);
    for (int row = 0; row < 2; ++row) {
        struct record record = taken(batch, &device);
        double sum = 0;
        for (int i = 0; i < PART_COUNT; ++i) {
            assert_int_equal(isnan(record.wall_time_part[i]), least[i] == 0);
            sum += least[i] == 0 ? 0 : record.wall_time_part[i];
            assert_true(least[i] == 0 || record.wall_time_part[i] >= least[i]);
        }
        assert_true(sum <= record.wall_time * (1 + 1e-9));
        assert_true(record.wall_time_part[PART_COUNTS] >= (row + 1) * device.own + 0.05e-3);
        record_clear(&record);
    }
    batch_destroy(batch, &device);
}

TEST(a_row_may_be_counted_at_once)
{
    struct device_state device = counting;
    struct batch *batch = batch_create(&made_up);
    struct record record;
    assert_waits(batch, &device, 1);
    assert_false(measure(batch, &device, 2, false, &record));
    assert_counted(&record, 2);
    record = taken(batch, &device);
    assert_counted(&record, 1);
    assert_int_equal(device.collections, 2);
    batch_destroy(batch, &device);
}

TEST(without_room_nothing_waits)
{
    struct device_state device = {.time = 1e-3, .iterations = 1, .room = 0};
    struct device_ops alone = made_up;
    struct record record;
    alone.has_room = NULL;
    struct batch *batch = batch_create(&alone);
    for (int i = 1; i <= 2; ++i) {
        assert_false(measure(batch, &device, i, true, &record));
        assert_counted(&record, i);
    }
    assert_int_equal(device.most, 1);
    assert_empty(batch, &device);
    batch_destroy(batch, &device);
}

/* Waiting rows are counted before the next one is prepared, and keep their order. */
TEST(without_room_waiting_rows_are_counted_first)
{
    struct device_state device = {.time = 1e-3, .iterations = 1, .room = 2};
    struct batch *batch = batch_create(&made_up);
    assert_all_wait(batch, &device, 5);
    assert_int_equal(device.most, 3);
    assert_int_equal(device.collections, 1);
    assert_all_counted(batch, &device, 5);
    assert_int_equal(device.counted[0], 3);
    assert_int_equal(device.counted[1], 2);
    assert_empty(batch, &device);
    batch_destroy(batch, &device);
}

/* Waiting rows leave no room for the row. Without a second attempt, it would be skipped. */
TEST(a_row_that_fails_beside_others_is_measured_alone)
{
    struct device_state device = {.time = 1e-3, .iterations = 1, .room = 9, .crowded = 3};
    struct batch *batch = batch_create(&made_up);
    assert_all_wait(batch, &device, 4);
    assert_int_equal(device.counted[0], 2);
    assert_all_counted(batch, &device, 4);
    batch_destroy(batch, &device);
}

/* Other rows get their counts; the row without counts is labelled, or failed. */
TEST(a_row_that_cannot_be_counted_is_counted_alone)
{
    static const enum status failures[] = {STATUS_OK, STATUS_FAILED};
    for (int row = 0; row < 2; ++row) {
        struct device_state device = {
            .time = 1e-3, .iterations = 1, .room = 9, .never = 2, .failure = failures[row]};
        struct batch *batch = batch_create(&made_up);
        for (int i = 1; i <= 3; ++i)
            assert_waits(batch, &device, i);
        for (int i = 1; i <= 3; ++i) {
            struct record record = taken(batch, &device);
            if (i != 2) {
                assert_counted(&record, i);
                continue;
            }
            assert_int_equal(record.status, failures[row] ? RECORD_FAILED : RECORD_MEASURED);
            if (failures[row])
                assert_string_equal(record.error, "it cannot be counted");
            else
                assert_int_equal(record.counters.code, COUNTED_INCOMPLETE);
            assert_true(isnan(record.flops_counted));
            record_clear(&record);
        }
        assert_int_equal(device.collections, 4);
        assert_empty(batch, &device);
        batch_destroy(batch, &device);
    }
}

TEST(a_lost_device_is_an_error)
{
    struct device_state device = {.time = 1e-3, .iterations = 1, .room = 9, .lost = true};
    struct batch *batch = batch_create(&made_up);
    struct record record;
    assert_waits(batch, &device, 1);
    assert_waits(batch, &device, 2);
    assert_fails_with(batch_take(batch, &device, &record, &failure), STATUS_DEVICE, "off the bus");
    batch_destroy(batch, &device);
    assert_int_equal(device.works, 0);
}
