/* The injection library in a program (inject_bench.h): what it counts, from run to run or in one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "inject_bench.h"
#include "scripted_cupti.h"
#include "worker/program/injected.h"

/* What a run counts, and how many runs of it there were. */
static void counted_once(void)
{
    cupti.runs = 1;
    usual();
}

static void counted_last(void)
{
    cupti.runs = CUPTI_PASSES;
    usual();
}

static void counts_go_from_run_to_run(void **state)
{
    (void)state;
    struct run run = {0};
    char image[64], next[80];
    snprintf(image, sizeof image, "/tmp/roofsweep-image-%d", (int)getpid());
    snprintf(next, sizeof next, "%s.next", image);
    run_program(counted_once, "count", "profiler", &run);
    assert_int_equal(run.found.passes, CUPTI_PASSES);
    assert_false(run.found.last);
    assert_int_not_equal(access(image, R_OK), 0);
    assert_int_equal(rename(next, image), 0);
    injected_clear(&run.found);
    run_program(counted_last, "count", "profiler", &run);
    unlink(image);
    assert_true(run.found.last);
    assert_int_equal(run.found.refusal.code, OUTCOME_MISSING);
    assert_true(run.found.values[QUANTITY_DRAM_READ] > 0);
    injected_clear(&run.found);
}

/* ---- traced and counted in one run ---- */

/* It has been left. */
static void unlink_image(void)
{
    char next[80];
    snprintf(next, sizeof next, "/tmp/roofsweep-image-%d.next", (int)getpid());
    assert_int_equal(unlink(next), 0);
}

/* So many regions of two launches; the last one of `odd` has three. */
static void regions(int count, bool odd)
{
    CALL(cuMemAlloc_v2);
    launch("warm");
    for (int i = 0; i < count; ++i) {
        CALL(cuProfilerStart);
        launch("a");
        launch("b");
        if (odd && i + 1 == count)
            launch("c");
        CALL(cuProfilerStop);
    }
}

static void seven_regions(void)
{
    cupti.in_process = true;
    cupti.ranges = 0;
    kernel_ran(1500, 0);
    regions(7, false);
    if (cupti.enabled != 1 || cupti.pushed != CUPTI_PASSES)
        _exit(1);
}

static void five_regions(void)
{
    cupti.in_process = true;
    kernel_ran(1500, 0);
    regions(5, false);
    if (cupti.pushed != 2)
        _exit(1);
}

static void an_odd_region(void)
{
    cupti.in_process = true;
    kernel_ran(1500, 0);
    regions(3, true);
}

static void one_run_traces_and_counts(void **state)
{
    (void)state;
    struct run run = {.regions = "7"};
    run_program(seven_regions, "profile", "profiler", &run);
    assert_int_equal(run.found.region_count, 1);
    assert_int_equal(run.found.launch_count, 1); /* of the first region's records */
    assert_non_null(strstr(run.found.sequence, " 2"));
    assert_int_equal(run.found.refusal.code, OUTCOME_MISSING);
    assert_true(run.found.last && run.found.values[QUANTITY_DRAM_READ] == CUPTI_EACH);
    assert_int_equal(run.found.each_count, 0);
    injected_clear(&run.found);
}

static void what_is_left_is_for_the_next_run(void **state)
{
    (void)state;
    struct run run = {.regions = "5"};
    run_program(five_regions, "profile", "profiler", &run);
    assert_int_equal(run.found.refusal.code, OUTCOME_MISSING);
    assert_false(run.found.last);
    assert_int_equal(run.found.passes, CUPTI_PASSES);
    unlink_image();
    injected_clear(&run.found);
}

static void regions_that_differ_are_not_added_up(void **state)
{
    (void)state;
    struct run run = {.regions = "3"};
    run_program(an_odd_region, "profile", "profiler", &run);
    assert_int_equal(run.found.refusal.code, COUNTED_INCOMPLETE);
    assert_non_null(strstr(run.found.refusal.reason, "something else than the first"));
    assert_false(run.found.last);
    injected_clear(&run.found);
}

/* Four launches since the pass began, of which the last two are the region's. */
static void launch_by_launch(void)
{
    cupti.in_process = true;
    cupti.ranges = 4;
    kernel_ran(1500, 0);
    kernel_ran(1700, 0);
    regions(7, false);
    if (cupti.pushed != 0 || cupti.range != CUPTI_AutoRange)
        _exit(1);
}

static void a_range_too_many(void)
{
    cupti.in_process = true;
    cupti.ranges = 5;
    kernel_ran(1500, 0);
    regions(7, false);
}

static void each_launch_by_itself(void **state)
{
    (void)state;
    struct run run = {.regions = "7", .ranges = "launches"};
    struct record record;
    struct error error;
    run_program(launch_by_launch, "profile", "profiler", &run);
    assert_int_equal(run.found.each_count, 2);
    assert_true(run.found.each[0][QUANTITY_DRAM_READ] == 3 * CUPTI_EACH);
    assert_true(run.found.each[1][QUANTITY_DRAM_READ] == 4 * CUPTI_EACH);
    assert_true(run.found.values[QUANTITY_DRAM_READ] == 7 * CUPTI_EACH);
    record_init(&record);
    assert_int_equal(injected_record_trace(&run.found, 1, &record, &error), STATUS_OK);
    injected_record_counts(&run.found, &run.found, 1, &record);
    assert_int_equal(record.kernel_count, 1);
    assert_true(record.kernels[0].flops_counted == record.flops_counted);
    assert_true(record.kernels[0].bytes_counted[LEVEL_DRAM] == record.bytes_counted[LEVEL_DRAM]);
    record_clear(&record);
    injected_clear(&run.found);
    run_program(a_range_too_many, "profile", "profiler", &run);
    assert_int_equal(run.found.refusal.code, COUNTED_INCOMPLETE);
    assert_int_equal(run.found.each_count, 0);
    injected_clear(&run.found);
    run.regions = "5"; /* too few for all passes: the region is the range */
    run_program(five_regions, "profile", "profiler", &run);
    assert_int_equal(run.found.refusal.code, OUTCOME_MISSING);
    unlink_image();
    injected_clear(&run.found);
}

static void replayed_by_kernel(void)
{
    cupti.replayed = true;
    cupti.ranges = 2;
    regions(1, false);
}

static void kernels_are_replayed_in_one_run(void **state)
{
    (void)state;
    struct run run = {.ranges = "replay"};
    run_program(replayed_by_kernel, "count", "profiler", &run);
    assert_int_equal(run.found.refusal.code, OUTCOME_MISSING);
    assert_true(run.found.last && run.found.each_count == 2);
    injected_clear(&run.found);
}

static void refused(void)
{
    cupti.start = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    usual();
}

static void in_another_context(void)
{
    CALL(cuMemAlloc_v2);
    program_context = (CUcontext)&cupti;
    usual();
}

static void counters_that_are_refused_say_why(void **state)
{
    (void)state;
    struct run run = {0};
    run_program(refused, "count", "profiler", &run);
    assert_int_equal(run.found.region_count, 1);
    assert_int_equal(run.found.refusal.code, COUNTED_REFUSED);
    assert_non_null(strstr(run.found.refusal.reason, "may not read hardware counters"));
    injected_clear(&run.found);
    run_program(in_another_context, "count", "profiler", &run);
    assert_int_equal(run.found.refusal.code, COUNTED_INCOMPLETE);
    assert_non_null(strstr(run.found.refusal.reason, "another context"));
    injected_clear(&run.found);
}

static void unloads_before(void)
{
    CALL(cuMemAlloc_v2);
    cupti_unload(); /* of what was never counted */
    usual();
}

static void unloads_within(void)
{
    CALL(cuMemAlloc_v2);
    CALL(cuProfilerStart);
    launch("a");
    cupti_unload();
    launch("b");
    CALL(cuProfilerStop);
}

static void what_unloads_counted_code_is_told(void **state)
{
    (void)state;
    struct run run = {0};
    run_program(unloads_before, "count", "profiler", &run);
    assert_false(run.found.unloaded);
    unlink_image();
    injected_clear(&run.found);
    run_program(unloads_within, "count", "profiler", &run);
    assert_int_equal(run.found.region_count, 1);
    assert_int_equal(run.found.refusal.code, OUTCOME_MISSING);
    assert_true(run.found.unloaded && run.found.passes > 0);
    unlink_image();
    injected_clear(&run.found);
}

#define TEST(name) cmocka_unit_test_setup(name, inject_set_up)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(counts_go_from_run_to_run),
        TEST(one_run_traces_and_counts),
        TEST(what_is_left_is_for_the_next_run),
        TEST(regions_that_differ_are_not_added_up),
        TEST(each_launch_by_itself),
        TEST(kernels_are_replayed_in_one_run),
        TEST(counters_that_are_refused_say_why),
        TEST(what_unloads_counted_code_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
