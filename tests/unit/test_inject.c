/* The injection library in a program (inject_bench.h): which regions there are, their times and traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "inject_bench.h"
#include "scripted_cupti.h"
#include "worker/program/injected.h"

static void without_a_task_nothing_happens(void **state)
{
    (void)state;
    struct run run = {0};
    run_program(usual, "nothing", "profiler", &run);
    assert_int_equal(run.found.processes, 0);
    injected_clear(&run.found);
}

static void only_two_calls(void)
{
    int enabled = 0;
    for (size_t i = 0; i < sizeof cupti.calls; ++i)
        enabled += cupti.calls[i];
    usual();
    if (enabled != 2 || cupti.attached || cupti.activity_enabled)
        _exit(1);
}

static void a_timed_program_has_a_time_for_each_region(void **state)
{
    (void)state;
    struct run run = {0};
    run_program(only_two_calls, "time", "profiler", &run);
    assert_int_equal(run.found.processes, 1);
    assert_int_equal(run.found.region_count, 2);
    injected_clear(&run.found);
}

static void traced(void)
{
    kernel_ran(500, 0); /* before the region */
    kernel_ran(1500, 0);
    kernel_ran(1550, 7);
    usual();
}

static void a_traced_program_tells_the_kernels_of_its_first_region(void **state)
{
    (void)state;
    struct run run = {0};
    struct record record;
    struct error error;
    run_program(traced, "trace", "profiler", &run);
    assert_int_equal(run.found.region_count, 1);
    assert_int_equal(run.found.launch_count, 2);
    assert_int_equal(run.found.in_graphs, 1);
    assert_int_equal(run.found.kernel_count, 1);
    assert_string_equal(run.found.kernels[0].name, "add(int)");
    assert_int_equal(run.found.kernels[0].count, 2);
    assert_string_equal(run.found.untraced, "");
    assert_non_null(strstr(run.found.sequence, " 2"));
    record_init(&record);
    assert_int_equal(injected_record_trace(&run.found, 2, &record, &error), STATUS_OK);
    assert_int_equal(record.launches, 1);
    assert_true(record.busy_time > 74e-9 && record.busy_time < 76e-9); /* they overlap */
    record_clear(&record);
    injected_clear(&run.found);
}

static void never_opens(void)
{
    CALL(cuMemAlloc_v2);
    launch("a");
}

static void never_closes(void)
{
    CALL(cuProfilerStart);
    launch("a");
}

static void leaves_at_once(void)
{
    launch("a");
    _exit(0);
}

static void opens_in_its_children_too(void)
{
    CALL(cuProfilerStart);
    if (fork() == 0) { /* CUDA cannot be used there */
        CALL(cuProfilerStop);
        exit(0);
    }
    wait(NULL);
    launch("a");
    CALL(cuProfilerStop);
}

static void regions_of_odd_programs(void **state)
{
    (void)state;
    static const struct {
        void (*behaviour)(void);
        const char *region;
        size_t processes, regions;
    } rows[] = {
        {never_opens, "profiler", 0, 0},
        {never_closes, "profiler", 1, 0},
        {never_opens, "all", 1, 1},
        {leaves_at_once, "all", 1, 0},
        {opens_in_its_children_too, "profiler", 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct run run = {0};
        run_program(rows[i].behaviour, "trace", rows[i].region, &run);
        assert_int_equal(run.found.processes, rows[i].processes);
        assert_int_equal(run.found.region_count, rows[i].regions);
        injected_clear(&run.found);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, inject_set_up)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_task_nothing_happens),
        TEST(a_timed_program_has_a_time_for_each_region),
        TEST(a_traced_program_tells_the_kernels_of_its_first_region),
        TEST(regions_of_odd_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
