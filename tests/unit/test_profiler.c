/* The profiler's life cycle: the real room over a scripted CUPTI (scripted_cupti.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "profiler_bench.h"

/* ---- the table of states ---- */

static void the_table_allows_what_the_header_says(void **state)
{
    (void)state;
    static const enum profiler_state allowed[][2] = {
        {PROFILER_UNDECIDED, PROFILER_ON_TRIAL},
        {PROFILER_UNDECIDED, PROFILER_TRACER_STAYS},
        {PROFILER_UNDECIDED, PROFILER_LEAVES},
        {PROFILER_ON_TRIAL, PROFILER_UNDECIDED},
        {PROFILER_ON_TRIAL, PROFILER_COUNTERS_STAY},
        {PROFILER_TRACER_STAYS, PROFILER_LEAVES},
        {PROFILER_COUNTERS_STAY, PROFILER_COUNTERS_LOST},
        {PROFILER_COUNTERS_STAY, PROFILER_LEAVES},
        {PROFILER_COUNTERS_LOST, PROFILER_COUNTERS_STAY},
        {PROFILER_COUNTERS_LOST, PROFILER_TRACER_BETWEEN},
        {PROFILER_COUNTERS_LOST, PROFILER_LEAVES},
        {PROFILER_TRACER_BETWEEN, PROFILER_COUNTERS_LOST},
        {PROFILER_TRACER_BETWEEN, PROFILER_LEAVES},
        {PROFILER_LEAVES, PROFILER_ON_TRIAL},
    };
    size_t found = 0;
    for (int from = 0; from < PROFILER_STATES; ++from)
        for (int to = 0; to < PROFILER_STATES; ++to)
            found += profiler_may_change((enum profiler_state)from, (enum profiler_state)to);
    assert_int_equal(found, sizeof allowed / sizeof *allowed);
    for (size_t i = 0; i < found; ++i)
        assert_true(profiler_may_change(allowed[i][0], allowed[i][1]));
}

static void nothing_is_attached_at_first(void **state)
{
    (void)state;
    assert_state(PROFILER_UNDECIDED);
    assert_true(profiler_counters(profiler)->code == OUTCOME_MISSING);
    profiler_leave(profiler);
    profiler_keep(profiler);
    assert_int_equal(cupti.attached + cupti.finalized + cupti.activity_enabled, 0);
}

static void counters_that_were_tried_leave_before_anything_is_timed(void **state)
{
    (void)state;
    assert_int_equal(try_counters().code, COUNTED_YES);
    assert_state(PROFILER_ON_TRIAL);
    profiler_leave(profiler);
    assert_state(PROFILER_UNDECIDED);
    int attached = cupti.attached;
    assert_int_equal(try_counters().code, COUNTED_YES); /* tried once for all */
    assert_int_equal(cupti.attached, attached);
    assert_state(PROFILER_UNDECIDED);
    assert_int_equal(test.judged, 0);
}

static void a_failed_collection_ends_the_trial(void **state)
{
    (void)state;
    try_counters();
    cupti.start = CUPTI_ERROR_HARDWARE_BUSY;
    assert_int_equal(collect().code, COUNTED_REFUSED);
    assert_state(PROFILER_UNDECIDED);
}

/* As the self-test asks for it. */
static void what_is_to_be_kept_is_on_trial_until_it_leaves(void **state)
{
    (void)state;
    try_counters();
    profiler_leave(profiler);
    assert_int_equal(collect().code, COUNTED_YES);
    assert_state(PROFILER_UNDECIDED);
    profiler_keep(profiler);
    assert_state(PROFILER_UNDECIDED);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(collect().code, COUNTED_YES);
        assert_state(PROFILER_ON_TRIAL);
    }
    profiler_leave(profiler);
    assert_state(PROFILER_UNDECIDED);
}

/* It is judged with nothing attached, and then with the counters; attached once for all rows. */
static void counters_stay_that_disturb_nothing(void **state)
{
    (void)state;
    begin_counting();
    assert_state(PROFILER_COUNTERS_STAY);
    assert_true(profiler_ratio(profiler) == 1.0);
    assert_int_equal(test.judged, 2);
    int attached = cupti.attached;
    count_well(0);
    count_well(0);
    assert_state(PROFILER_COUNTERS_STAY);
    assert_int_equal(cupti.attached, attached);
    assert_int_equal(test.judged, 2);
}

static void a_little_more_time_is_tolerable(void **state)
{
    (void)state;
    test.disturbed = 1.049;
    begin_counting();
    assert_state(PROFILER_COUNTERS_STAY);
    assert_true(fabs(profiler_ratio(profiler) - 1.049) < 1e-9);
}

static void counters_that_disturb_times_leave_for_good(void **state)
{
    (void)state;
    test.disturbed = 1.06;
    begin_counting();
    assert_state(PROFILER_LEAVES);
    test.disturbed = 1.0;
    count_well(0);
    assert_state(PROFILER_LEAVES);
    assert_int_equal(test.judged, 2);
}

/* What is attached must count the same when it counts again. */
static void counters_that_count_otherwise_leave_for_good(void **state)
{
    (void)state;
    try_counters();
    profiler_leave(profiler);
    cupti.same = cupti.evaluated + 2; /* the work, and the trial after it */
    count_well(0);
    assert_state(PROFILER_LEAVES);
}

/* It fails when it is to count again: lost, and then for good. */
static void counters_that_fail_at_once_leave_for_good(void **state)
{
    (void)state;
    try_counters();
    profiler_leave(profiler);
    test.start_from_now = CUPTI_ERROR_HARDWARE_BUSY;
    count_well(0);
    assert_state(PROFILER_LEAVES);
}

/* One that can be configured only once an attachment. */
static void counters_that_count_only_afresh_leave_for_good(void **state)
{
    (void)state;
    cupti.config_once = true;
    begin_counting();
    assert_state(PROFILER_LEAVES);
    count_well(0);
    assert_state(PROFILER_LEAVES);
}

static void lost_counters_come_back_and_are_judged_again(void **state)
{
    (void)state;
    begin_counting();
    cupti.start = CUPTI_ERROR_HARDWARE_BUSY;
    assert_int_equal(count(0).code, COUNTED_REFUSED);
    assert_state(PROFILER_COUNTERS_LOST);
    trace_well();
    assert_state(PROFILER_TRACER_BETWEEN);
    cupti.start = CUPTI_SUCCESS;
    int judged = test.judged;
    count_well(0);
    assert_state(PROFILER_COUNTERS_STAY);
    assert_int_equal(test.judged, judged + 1);
    cupti.start = CUPTI_ERROR_HARDWARE_BUSY;
    count(0);
    cupti.start = CUPTI_SUCCESS;
    test.disturbed = 2.0;
    count_well(0);
    assert_state(PROFILER_LEAVES);
}

static void counters_that_count_more_are_judged_again(void **state)
{
    (void)state;
    begin_counting();
    count_well(quantity_tensor(QUANTITY_TENSOR_FP16));
    assert_state(PROFILER_COUNTERS_STAY);
    assert_int_equal(test.judged, 3);
    count_well(0);
    count_well(quantity_tensor(QUANTITY_TENSOR_FP16));
    assert_int_equal(test.judged, 3);
    test.disturbed = 1.5;
    count_well(quantity_tensor(QUANTITY_TENSOR_BF16));
    assert_state(PROFILER_LEAVES);
}

/* Then nobody knows whether they disturb: decided with the next row. */
static void without_known_kernels_nothing_is_decided(void **state)
{
    (void)state;
    try_counters();
    test.judge = STATUS_UNSUPPORTED; /* a device too full for them */
    count_well(0);
    assert_state(PROFILER_UNDECIDED);
    test.judge = STATUS_OK;
    count_well(0);
    assert_state(PROFILER_COUNTERS_STAY);
}

/* In a process where nobody times anything. */
static void without_a_judge_all_stays(void **state)
{
    (void)state;
    profiler_close(profiler);
    open_profiler(false);
    begin_counting();
    assert_int_equal(profiler_state(profiler), PROFILER_COUNTERS_STAY);
    assert_true(isnan(profiler_ratio(profiler)));
    trace_well();
    assert_int_equal(profiler_state(profiler), PROFILER_COUNTERS_STAY);
    assert_int_equal(test.judged, 0);
}

enum { WORKS = 3 };

static void count_works(void)
{
    const struct profiled_work works[WORKS] = {work, work, work};
    double values[WORKS][QUANTITY_COUNT];
    struct outcome outcome;
    struct error error;
    assert_int_equal(profiler_count(profiler, 0, works, WORKS, values, &outcome, &error),
                     STATUS_OK);
    assert_int_equal(outcome.code, COUNTED_YES);
    for (int i = 0; i < WORKS; ++i)
        assert_true(values[i][QUANTITY_DRAM_READ] == CUPTI_EACH * (WORKS - i));
    assert_int_equal(profiler_review(profiler, &error), STATUS_OK);
}

/* What it leaves behind would disturb times: the tracer stays attached until the next ones are counted. */
static void after_several_works_the_counters_leave(void **state)
{
    (void)state;
    begin_counting();
    int attached = cupti.attached;
    count_works();
    assert_int_equal(cupti.attached, attached);
    assert_state(PROFILER_COUNTERS_LOST);
    int judged = test.judged;
    for (int i = 0; i < 2; ++i) {
        trace_well();
        assert_state(PROFILER_TRACER_BETWEEN);
        int finalized = cupti.finalized;
        trace_well();
        assert_int_equal(cupti.finalized, finalized);
        assert_state(PROFILER_TRACER_BETWEEN);
        count_works();
        assert_int_equal(cupti.finalized,
                         finalized + 2); /* the tracer, and the counters behind it */
        assert_state(PROFILER_COUNTERS_LOST);
    }
    assert_int_equal(test.judged, judged + 1); /* once is enough */
    count_well(0);                             /* one work alone: they stay, if they may */
    assert_state(PROFILER_COUNTERS_STAY);
}

static void a_tracer_between_that_disturbs_times_leaves_for_good(void **state)
{
    (void)state;
    begin_counting();
    count_works();
    test.disturbed = 1.5;
    trace_well();
    assert_state(PROFILER_LEAVES);
    count_works();
    trace_well();
    assert_state(PROFILER_LEAVES);
}

static void a_tracer_between_makes_room(void **state)
{
    (void)state;
    begin_counting();
    count_works();
    trace_well();
    profiler_lend(profiler);
    assert_state(PROFILER_COUNTERS_LOST);
}

/* By the first of them: after all of them it could not be told. */
static void several_works_decide_whether_it_stays(void **state)
{
    (void)state;
    enum { TRIAL = 1, AGAIN = 1 };
    assert_int_equal(try_counters().code, COUNTED_YES);
    profiler_leave(profiler);
    int pushed = cupti.pushed;
    count_works();
    assert_state(PROFILER_COUNTERS_LOST);
    assert_int_equal(cupti.pushed - pushed, 1 + TRIAL + AGAIN + WORKS);
    assert_int_equal(test.judged, 2);
}

/* ---- refusals ---- */

static void refused_counters_are_not_tried_again(void **state)
{
    (void)state;
    cupti.initialize = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_int_equal(try_counters().code, COUNTED_REFUSED);
    assert_state(PROFILER_UNDECIDED);
    cupti.initialize = CUPTI_SUCCESS;
    assert_int_equal(try_counters().code, COUNTED_REFUSED);
    assert_int_equal(cupti.attached, 1);
    trace_well(); /* nothing is counted: the tracer may stay */
    assert_state(PROFILER_TRACER_STAYS);
}

static void counters_without_memory_are_refused(void **state)
{
    (void)state;
    test.reserve = STATUS_UNSUPPORTED;
    struct outcome outcome = try_counters();
    assert_int_equal(outcome.code, COUNTED_REFUSED);
    assert_string_equal(outcome.reason, "as the test wants");
    assert_state(PROFILER_UNDECIDED);
}

/* It was attached when counting was refused: with all tensors, and with none. */
static void a_refusal_that_shows_late_is_one(void **state)
{
    (void)state;
    cupti.start = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_int_equal(try_counters().code, COUNTED_REFUSED);
    assert_state(PROFILER_UNDECIDED);
    trace_well();
    assert_state(
        PROFILER_UNDECIDED); /* the counters were opened: each trace attaches and detaches */
}

#define TEST(function)                                                                             \
    cmocka_unit_test_setup_teardown(function, profiler_set_up, profiler_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_table_allows_what_the_header_says),
        TEST(nothing_is_attached_at_first),
        TEST(counters_that_were_tried_leave_before_anything_is_timed),
        TEST(a_failed_collection_ends_the_trial),
        TEST(what_is_to_be_kept_is_on_trial_until_it_leaves),
        TEST(counters_stay_that_disturb_nothing),
        TEST(a_little_more_time_is_tolerable),
        TEST(counters_that_disturb_times_leave_for_good),
        TEST(counters_that_count_otherwise_leave_for_good),
        TEST(counters_that_fail_at_once_leave_for_good),
        TEST(counters_that_count_only_afresh_leave_for_good),
        TEST(lost_counters_come_back_and_are_judged_again),
        TEST(counters_that_count_more_are_judged_again),
        TEST(without_known_kernels_nothing_is_decided),
        TEST(without_a_judge_all_stays),
        TEST(after_several_works_the_counters_leave),
        TEST(a_tracer_between_that_disturbs_times_leaves_for_good),
        TEST(a_tracer_between_makes_room),
        TEST(several_works_decide_whether_it_stays),
        TEST(refused_counters_are_not_tried_again),
        TEST(counters_without_memory_are_refused),
        TEST(a_refusal_that_shows_late_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
