/* What the profiler traces, and work and devices that fail: the real room over a scripted CUPTI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "profiler_bench.h"

/* ---- traces ---- */

/* It is judged with nothing attached, and then beside the tracer. */
static void a_tracer_stays_that_disturbs_nothing(void **state)
{
    (void)state;
    for (int i = 1; i <= 2; ++i) {
        trace_well();
        assert_attached(PROFILER_TRACER);
        assert_true(profiler_ratio(profiler) == 1.0);
        assert_int_equal(test.judged, 2);
        assert_int_equal(cupti.finalized, 0);
        assert_int_equal(cupti.activity_disabled, i);
    }
}

static void a_little_more_time_is_tolerable(void **state)
{
    (void)state;
    test.disturbed = 1.049;
    trace_well();
    assert_attached(PROFILER_TRACER);
    assert_true(fabs(profiler_ratio(profiler) - 1.049) < 1e-9);
}

/* What happens once may be noise. */
static void a_tracer_is_judged_by_its_best_time(void **state)
{
    (void)state;
    test.disturbed = 1.2;
    test.disturbances = 2;
    trace_well();
    assert_attached(PROFILER_TRACER);
    assert_true(profiler_ratio(profiler) == 1.0);
    assert_int_equal(test.judged, 4);
}

static void a_tracer_that_disturbs_times_leaves_for_good(void **state)
{
    (void)state;
    test.disturbed = 1.2;
    for (int i = 1; i <= 2; ++i) {
        trace_well();
        assert_attached(PROFILER_NOTHING);
        assert_int_equal(cupti.finalized, i);
    }
    assert_int_equal(test.judged, 4);
}

/* Then nobody knows whether it disturbs: decided with the next trace. */
static void without_known_kernels_nothing_is_decided(void **state)
{
    (void)state;
    test.judge = STATUS_UNSUPPORTED; /* a device too full for them */
    trace_well();
    assert_attached(PROFILER_NOTHING);
    test.judge = STATUS_OK;
    trace_well();
    assert_attached(PROFILER_TRACER);
}

static void a_trace_that_is_in_the_way_is_repeated_without(void **state)
{
    (void)state;
    trace_well();
    cupti.in_the_way = true;
    trace_well();
    assert_attached(PROFILER_NOTHING);
    assert_int_equal(test.runs, 2); /* the one that was refused did not run */
    trace_well();
    assert_attached(PROFILER_NOTHING);
}

static void the_tracer_leaves_when_counters_are_tried(void **state)
{
    (void)state;
    trace_well();
    cupti.supported = CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED;
    assert_int_equal(try_counters().code, COUNTED_REFUSED);
    assert_attached(PROFILER_NOTHING);
    trace_well();
    assert_attached(PROFILER_TRACER);
    assert_int_equal(test.judged, 2); /* it had been */
}

static void refused_traces_are_not_tried_again(void **state)
{
    (void)state;
    CUptiResult *const places[] = {&cupti.register_callbacks, &cupti.activity_enable};
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        profiler_tear_down(NULL);
        profiler_set_up(NULL);
        *places[i] = CUPTI_ERROR_NOT_COMPATIBLE;
        add_record("kernel", 1, 500);
        struct outcome outcome = trace();
        assert_int_equal(outcome.code, TRACED_REFUSED);
        assert_string_equal(outcome.reason, "in the way");
        assert_attached(PROFILER_NOTHING);
        int calls = cupti.activity_enabled + cupti.activity_disabled + cupti.finalized;
        struct outcome again = trace();
        assert_true(outcome_same(&again, &outcome));
        assert_int_equal(cupti.activity_enabled + cupti.activity_disabled + cupti.finalized, calls);
        assert_int_equal(test.runs, 0);
    }
}

static void incomplete_traces_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *reason;
        size_t dropped;
        CUptiResult flush;
        int records;
        uint64_t time;
    } rows[] = {
        {"CUPTI dropped records", 3, CUPTI_SUCCESS, 2, 10},
        {"a kernel without timestamps", 0, CUPTI_SUCCESS, 1, 0},
        {"it saw no kernels", 0, CUPTI_SUCCESS, 0, 0},
        {"some failure", 0, CUPTI_ERROR_UNKNOWN, 1, 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        profiler_tear_down(NULL);
        profiler_set_up(NULL);
        for (int j = 0; j < rows[i].records; ++j)
            add_record("kernel", (uint32_t)j, rows[i].time);
        cupti.records_dropped = rows[i].dropped;
        cupti.flush = rows[i].flush;
        struct outcome outcome = trace();
        assert_int_equal(outcome.code, TRACED_BADLY);
        assert_string_equal(outcome.reason, rows[i].reason);
        assert_int_equal(test.runs, 2); /* again, with nothing in the way */
        assert_attached(PROFILER_NOTHING);
        cupti.records_dropped = 0;
        cupti.flush = CUPTI_SUCCESS;
        trace_well(); /* the next one may be complete */
    }
}

/* CUPTI hands them over as they end; what is neither a kernel nor new makes no row. */
static void kernels_are_known_by_name_and_shape(void **state)
{
    (void)state;
    add_record("_Z4gemmPf", 30, 500);
    add_record("copy", 10, 100);
    add_record("_Z4gemmPf", 20, 700);
    add_record("_Z4gemmPf", 40, 50);
    cupti.records[3].blockX = 256;
    add_record("no kernel", 50, 1);
    cupti.records[4].kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    assert_int_equal(trace().code, TRACED_WELL);
    const struct trace last = *profiler_last_trace(profiler);
    assert_int_equal(last.kernel_count, 3);
    assert_string_equal(last.kernels[0].name, "gemm(float*)");
    assert_int_equal(last.kernels[0].count, 2);
    assert_true(fabs(last.kernels[0].time - 1200e-9) < 1e-15);
    assert_int_equal(last.kernels[0].grid_x, 8);
    assert_int_equal(last.kernels[0].dynamic_shared, 1024);
    assert_string_equal(last.kernels[1].name, "copy");
    assert_int_equal(last.kernels[2].block_x, 256);
    assert_int_equal(last.kernels[0].cluster, 1);
    static const struct {
        uint32_t correlation;
        size_t kernel;
    } order[] = {{10, 1}, {20, 0}, {30, 0}, {40, 2}};
    assert_int_equal(last.launch_count, sizeof order / sizeof *order);
    for (size_t i = 0; i < last.launch_count; ++i) {
        assert_int_equal(last.launches[i].correlation, order[i].correlation);
        assert_int_equal(last.launches[i].kernel, order[i].kernel);
    }
}

/* Two of three run at the same time: that counts once. The gap is from 1700 to 2000. */
static void times_of_kernels_at_the_same_time_count_once(void **state)
{
    (void)state;
    add_record("first", 1, 500);
    add_record("second", 2, 400);
    cupti.records[1].start = 1300;
    cupti.records[1].end = 1700;
    add_record("third", 3, 50);
    cupti.records[2].start = 2000;
    cupti.records[2].end = 2050;
    cupti.records[2].clusterX = 4;
    cupti.records[2].clusterY = cupti.records[2].clusterZ = 1;
    cupti.records[2].maxActiveClusters = 30;
    assert_int_equal(trace().code, TRACED_WELL);
    const struct trace last = *profiler_last_trace(profiler);
    assert_true(fabs(last.busy_time - 750e-9) < 1e-15);
    assert_true(fabs(last.span - 1050e-9) < 1e-15);
    assert_int_equal(last.kernels[2].cluster, 4);
    assert_int_equal(last.kernels[2].clusters_most, 30);
}

static enum status hold(void *argument, struct error *error)
{
    (void)argument;
    (void)error;
    ++test.holds;
    return STATUS_OK;
}

/* What keeps the device waiting is launched first, and is no part of the work. */
static void the_wait_before_the_work_is_not_in_the_trace(void **state)
{
    (void)state;
    const struct profiled_work held = {work_prepare, work_run, NULL, hold};
    struct outcome outcome;
    struct error error;
    add_record("first", 3, 500);
    add_record("wait", 1, 100000);
    add_record("second", 2, 400);
    add_record("first", 4, 500);
    assert_int_equal(profiler_trace(profiler, &held, &outcome, &error), STATUS_OK);
    assert_int_equal(outcome.code, TRACED_WELL);
    assert_int_equal(test.holds, 1);
    const struct trace last = *profiler_last_trace(profiler);
    assert_int_equal(last.kernel_count, 2);
    assert_string_equal(last.kernels[0].name, "first");
    assert_int_equal(last.kernels[0].count, 2);
    assert_string_equal(last.kernels[1].name, "second");
    assert_int_equal(last.launch_count, 3);
    assert_int_equal(last.launches[0].kernel, 1);
    assert_int_equal(last.launches[1].kernel, 0);
    assert_true(fabs(last.busy_time - 500e-9) < 1e-15);

    cupti.record_count = 0;
    add_record("wait", 1, 100000);
    assert_int_equal(profiler_trace(profiler, &held, &outcome, &error), STATUS_OK);
    assert_int_equal(outcome.code, TRACED_BADLY);
    assert_string_equal(outcome.reason, "it saw no kernels");
}

static void launches_of_the_trace_are_counted_by_themselves(void **state)
{
    (void)state;
    enum { LAUNCHES = 2 };
    double values[LAUNCHES][QUANTITY_COUNT];
    struct outcome outcome;
    struct error error;
    begin_counting();
    add_record("a", 2, 5);
    add_record("b", 1, 5);
    assert_int_equal(trace().code, TRACED_WELL);
    cupti.ranges = LAUNCHES;
    assert_int_equal(
        profiler_count_launches(profiler, 0, &work, LAUNCHES, 0, values, &outcome, &error),
        STATUS_OK);
    assert_int_equal(outcome.code, COUNTED_YES);
    assert_int_equal(cupti.range, CUPTI_AutoRange);
    for (int i = 0; i < LAUNCHES; ++i)
        assert_true(values[i][QUANTITY_DRAM_READ] == CUPTI_EACH * (i + 1));
    assert_attached(PROFILER_COUNTERS);
}

/* ---- failures of the work, and a device that is lost ---- */

static void a_trace_that_fails_leaves_nothing_attached(void **state)
{
    (void)state;
    enum status *const places[] = {&test.prepare, &test.run};
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        struct outcome outcome;
        struct error error;
        *places[i] = STATUS_FAILED;
        assert_int_equal(profiler_trace(profiler, &work, &outcome, &error), STATUS_FAILED);
        assert_int_equal(profiler_last_trace(profiler)->launch_count, 0);
        assert_attached(PROFILER_NOTHING);
        *places[i] = STATUS_OK;
    }
    trace_well();
    assert_attached(PROFILER_TRACER);
}

static void work_that_fails_detaches_the_counters(void **state)
{
    (void)state;
    double values[1][QUANTITY_COUNT];
    struct outcome outcome;
    struct error error;
    begin_counting();
    test.run = STATUS_FAILED;
    assert_int_equal(profiler_count(profiler, 0, &work, 1, values, &outcome, &error),
                     STATUS_FAILED);
    assert_string_equal(error.text, "as the test wants");
    assert_attached(PROFILER_NOTHING);
    test.run = STATUS_OK;
    count_well(0);
    assert_attached(PROFILER_COUNTERS);
}

/* Nothing of CUPTI is called any more, until the end. */
static void a_device_lost_while_it_counts_is_told(void **state)
{
    (void)state;
    double values[1][QUANTITY_COUNT];
    struct outcome outcome;
    struct error error;
    begin_counting();
    int finalized = cupti.finalized, disabled = cupti.disabled;
    test.run = STATUS_DEVICE;
    assert_int_equal(profiler_count(profiler, 0, &work, 1, values, &outcome, &error),
                     STATUS_DEVICE);
    assert_int_equal(cupti.finalized, finalized);
    assert_int_equal(cupti.disabled, disabled);
    test.run = STATUS_OK;
}

static void a_device_lost_while_it_is_traced_is_told(void **state)
{
    (void)state;
    struct outcome outcome;
    struct error error;
    test.run = STATUS_DEVICE;
    assert_int_equal(profiler_trace(profiler, &work, &outcome, &error), STATUS_DEVICE);
    assert_int_equal(cupti.finalized, 0);
    assert_int_equal(test.judged, 1);
    cupti.present = false; /* with the process */
}

static void a_device_lost_while_it_is_judged_is_told(void **state)
{
    (void)state;
    struct outcome outcome;
    struct error error;
    test.judge = STATUS_DEVICE;
    add_record("kernel", 1, 500);
    assert_int_equal(profiler_trace(profiler, &work, &outcome, &error), STATUS_DEVICE);
    assert_int_equal(test.runs, 0);
    test.judge = STATUS_OK;
    test.judge_later = STATUS_DEVICE;
    assert_int_equal(profiler_trace(profiler, &work, &outcome, &error), STATUS_DEVICE);
    assert_int_equal(test.runs, 1);
    assert_int_equal(cupti.finalized, 0);
}

#define TEST(function)                                                                             \
    cmocka_unit_test_setup_teardown(function, profiler_set_up, profiler_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tracer_stays_that_disturbs_nothing),
        TEST(a_little_more_time_is_tolerable),
        TEST(a_tracer_is_judged_by_its_best_time),
        TEST(a_tracer_that_disturbs_times_leaves_for_good),
        TEST(without_known_kernels_nothing_is_decided),
        TEST(a_trace_that_is_in_the_way_is_repeated_without),
        TEST(the_tracer_leaves_when_counters_are_tried),
        TEST(refused_traces_are_not_tried_again),
        TEST(incomplete_traces_say_why),
        TEST(kernels_are_known_by_name_and_shape),
        TEST(times_of_kernels_at_the_same_time_count_once),
        TEST(the_wait_before_the_work_is_not_in_the_trace),
        TEST(launches_of_the_trace_are_counted_by_themselves),
        TEST(a_trace_that_fails_leaves_nothing_attached),
        TEST(work_that_fails_detaches_the_counters),
        TEST(a_device_lost_while_it_counts_is_told),
        TEST(a_device_lost_while_it_is_traced_is_told),
        TEST(a_device_lost_while_it_is_judged_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
