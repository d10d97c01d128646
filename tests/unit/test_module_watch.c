/* Code that comes and goes while the collector's CUPTI stays attached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "collector_bench.h"
#include "scripted_cupti.h"
#include "worker/cuda/profiling/counters.h"

/* CUPTI would take what is loaded to the same address for what was there before. */
static void unloaded_code_begins_afresh(void **state)
{
    (void)state;
    struct counters *counters = counters_begin();
    cupti_unload(); /* nothing has been counted yet */
    assert_string_equal(collect_again(counters), "counted");
    assert_string_equal(collect_again(counters), "counted");
    assert_int_equal(cupti.enabled, 1);
    cupti_unload();
    cupti_unload();
    assert_string_equal(collect_again(counters), "counted");
    assert_string_equal(collect_again(counters), "counted");
    assert_int_equal(cupti.enabled, 2);
    assert_true(counters_are_attached(counters));
    counters_end(counters);
}

static enum status run_and_unload(void *argument, struct error *error)
{
    (void)argument, (void)error;
    ++cupti.runs;
    cupti_unload();
    return STATUS_OK;
}

static void code_unloaded_on_the_way_shows(void **state)
{
    (void)state;
    double values[1][QUANTITY_COUNT];
    const struct profiled_work work = {bench_work.prepare, run_and_unload, NULL, NULL};
    struct counters *counters = counters_begin();
    assert_string_equal(collect(counters, 0, &work, 1, values),
                        "incomplete: a module was unloaded while its kernels were counted");
    assert_true(isnan(values[0][QUANTITY_VECTOR_FP32]));
    assert_string_equal(collect_again(counters), "counted");
    counters_end(counters);
}

/* Beside another tool, which has subscribed, nothing is known of modules: each collection begins afresh. */
static void what_cannot_be_watched_begins_afresh(void **state)
{
    (void)state;
    struct counters *counters = counters_begin();
    cupti.subscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    for (int i = 1; i <= 3; ++i) {
        assert_string_equal(collect_again(counters), "counted");
        assert_int_equal(cupti.enabled, i);
    }
    assert_int_equal(cupti.subscribed, 0);
    counters_end(counters);
}

#define TEST(name) cmocka_unit_test_setup(name, cupti_set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unloaded_code_begins_afresh),
        TEST(code_unloaded_on_the_way_shows),
        TEST(what_cannot_be_watched_begins_afresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
