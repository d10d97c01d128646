/* What the profiler has attached, and whether it counts: the real room over a scripted CUPTI (scripted_cupti.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>

#include "profiler_bench.h"

/* ---- what is attached ---- */

static void nothing_is_attached_at_first(void **state)
{
    (void)state;
    assert_attached(PROFILER_NOTHING);
    assert_true(profiler_counters(profiler)->code == OUTCOME_MISSING);
    profiler_leave(profiler);
    profiler_lend(profiler);
    assert_int_equal(cupti.attached + cupti.finalized + cupti.activity_enabled, 0);
}

static void counters_are_tried_once_and_leave(void **state)
{
    (void)state;
    assert_int_equal(try_counters().code, COUNTED_YES);
    assert_attached(PROFILER_NOTHING);
    int attached = cupti.attached;
    assert_int_equal(try_counters().code, COUNTED_YES);
    assert_int_equal(cupti.attached, attached);
    assert_int_equal(test.judged, 0);
}

/* Collections that follow each other attach them once. */
static void counters_stay_until_they_are_told_to_leave(void **state)
{
    (void)state;
    begin_counting();
    assert_attached(PROFILER_COUNTERS);
    int attached = cupti.attached;
    count_well(0);
    assert_int_equal(cupti.attached, attached);
    for (int i = 0; i < 2; ++i) {
        profiler_leave(profiler);
        assert_attached(PROFILER_NOTHING);
    }
    count_well(0);
    assert_attached(PROFILER_COUNTERS);
    assert_int_equal(cupti.attached, attached + 1);
    assert_int_equal(test.judged, 0); /* nothing is timed beside them */
}

/* What was attached by the one is finalized before the other is attached. */
static void counters_and_tracer_make_room_for_each_other(void **state)
{
    (void)state;
    assert_int_equal(try_counters().code, COUNTED_YES);
    for (int i = 0; i < 3; ++i) {
        trace_well();
        assert_attached(PROFILER_TRACER);
        assert_true(profiler_ratio(profiler) == 1.0);
        profiler_leave(profiler); /* the counters: the tracer stays */
        assert_attached(PROFILER_TRACER);
        int finalized = cupti.finalized;
        count_well(0);
        assert_attached(PROFILER_COUNTERS);
        assert_int_equal(cupti.finalized, finalized + 1);
    }
    assert_int_equal(test.judged, 2); /* once is enough */
}

static void all_makes_room_for_others(void **state)
{
    (void)state;
    begin_counting();
    profiler_lend(profiler);
    assert_attached(PROFILER_NOTHING);
    trace_well();
    profiler_lend(profiler);
    assert_attached(PROFILER_NOTHING);
    trace_well();
    assert_attached(PROFILER_TRACER);
    assert_int_equal(test.judged, 2);
}

static void a_failed_collection_leaves_nothing_attached(void **state)
{
    (void)state;
    begin_counting();
    cupti.start = CUPTI_ERROR_HARDWARE_BUSY;
    assert_int_equal(count(0).code, COUNTED_REFUSED);
    assert_attached(PROFILER_NOTHING);
    cupti.start = CUPTI_SUCCESS;
    count_well(0);
    assert_attached(PROFILER_COUNTERS);
}

static void a_tracer_that_leaves_is_not_in_the_way_of_counters(void **state)
{
    (void)state;
    test.disturbed = 1.5;
    for (int i = 0; i < 2; ++i) {
        trace_well();
        assert_attached(PROFILER_NOTHING);
        begin_counting();
        assert_attached(PROFILER_COUNTERS);
    }
}

enum { WORKS = 3 };

static void several_works_are_counted_at_once(void **state)
{
    (void)state;
    const struct profiled_work works[WORKS] = {work, work, work};
    double values[WORKS][QUANTITY_COUNT];
    struct outcome outcome;
    struct error error;
    assert_int_equal(try_counters().code, COUNTED_YES);
    int pushed = cupti.pushed, attached = cupti.attached;
    assert_int_equal(profiler_count(profiler, 0, works, WORKS, values, &outcome, &error),
                     STATUS_OK);
    assert_int_equal(outcome.code, COUNTED_YES);
    for (int i = 0; i < WORKS; ++i)
        assert_true(values[i][QUANTITY_DRAM_READ] == CUPTI_EACH * (WORKS - i));
    assert_int_equal(cupti.pushed - pushed, WORKS);
    assert_int_equal(cupti.attached - attached, 1);
}

/* ---- refusals ---- */

static void refused_counters_are_not_tried_again(void **state)
{
    (void)state;
    cupti.initialize = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_int_equal(try_counters().code, COUNTED_REFUSED);
    cupti.initialize = CUPTI_SUCCESS;
    assert_int_equal(try_counters().code, COUNTED_REFUSED);
    assert_int_equal(cupti.attached, 1);
    assert_attached(PROFILER_NOTHING);
}

static void counters_without_memory_are_refused(void **state)
{
    (void)state;
    test.reserve = STATUS_UNSUPPORTED;
    struct outcome outcome = try_counters();
    assert_int_equal(outcome.code, COUNTED_REFUSED);
    assert_string_equal(outcome.reason, "as the test wants");
    assert_attached(PROFILER_NOTHING);
}

/* It was attached when counting was refused: with all tensors, and with none. */
static void a_refusal_that_shows_late_is_one(void **state)
{
    (void)state;
    cupti.start = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_int_equal(try_counters().code, COUNTED_REFUSED);
    assert_attached(PROFILER_NOTHING);
    trace_well();
    assert_attached(PROFILER_TRACER);
}

#define TEST(function)                                                                             \
    cmocka_unit_test_setup_teardown(function, profiler_set_up, profiler_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_attached_at_first),
        TEST(counters_are_tried_once_and_leave),
        TEST(counters_stay_until_they_are_told_to_leave),
        TEST(counters_and_tracer_make_room_for_each_other),
        TEST(all_makes_room_for_others),
        TEST(a_failed_collection_leaves_nothing_attached),
        TEST(a_tracer_that_leaves_is_not_in_the_way_of_counters),
        TEST(several_works_are_counted_at_once),
        TEST(refused_counters_are_not_tried_again),
        TEST(counters_without_memory_are_refused),
        TEST(a_refusal_that_shows_late_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
