/* Many ranges in one collection of hardware counters, over a scripted CUPTI (scripted_cupti.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "collector_bench.h"
#include "scripted_cupti.h"
#include "worker/cuda/profiling/counters.h"

enum { MANY = 20, MORE = 200 };

/* One of many works: which one it is, how often it was prepared and run. */
struct many {
    int number, prepared, ran;
    int fails_at; /* 0: never; else its run of this number fails */
};

static enum status many_prepare(void *argument, struct error *error)
{
    struct many *many = argument;
    (void)error;
    assert_true(cupti.passing && !cupti.within);
    ++many->prepared;
    return STATUS_OK;
}

static enum status many_run(void *argument, struct error *error)
{
    struct many *many = argument;
    assert_true(cupti.within);
    assert_int_equal(many->prepared, many->ran + 1); /* right before, in each pass */
    ++cupti.runs;
    return ++many->ran == many->fails_at ? error_set(error, STATUS_FAILED, "it cannot run")
                                         : STATUS_OK;
}

/* In this order of works; values[i] is of works[order[i]]. */
static enum status collect_many(struct counters *counters, struct many *many, size_t count,
                                double (*values)[QUANTITY_COUNT], struct outcome *outcome)
{
    static struct profiled_work works[MORE];
    struct error error;
    for (size_t i = 0; i < count; ++i)
        works[i] = (struct profiled_work){many_prepare, many_run, &many[i], NULL};
    cupti.runs = 0;
    cupti.ranges = 0; /* as many as were pushed */
    cupti.passes = CUPTI_PASSES * (int)count;
    return counters_collect(counters, 0, works, count, values, outcome, &error);
}

static void assert_nothing(double (*values)[QUANTITY_COUNT], size_t count)
{
    for (size_t i = 0; i < count; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            assert_true(isnan(values[i][j]));
}

/* Each pass begins once, with every work in turn; more than there was room for has the profiler enabled
 * anew, once. */
static void many_ranges_are_counted_in_each_pass(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        int enabled;
    } rows[] = {{MANY, 1}, {MANY, 1}, {MORE, 2}, {MANY, 2}};
    struct counters *counters = counters_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        static double values[MORE][QUANTITY_COUNT];
        struct many many[MORE] = {0};
        struct outcome outcome;
        assert_int_equal(collect_many(counters, many, rows[i].count, values, &outcome), STATUS_OK);
        assert_string_equal(text_of(&outcome), "counted");
        assert_int_equal(cupti.enabled, rows[i].enabled);
        assert_true(cupti.room >= rows[i].count);
        for (size_t j = 0; j < rows[i].count; ++j) {
            assert_int_equal(many[j].ran, CUPTI_PASSES);
            assert_true(values[j][QUANTITY_DRAM_READ] ==
                        CUPTI_EACH * (double)(rows[i].count - j)); /* known by its name */
        }
    }
    counters_end(counters);
}

/* It ends the collection, in whichever pass: nothing is told, CUPTI leaves, and the next one is right. */
static void a_work_that_fails_ends_the_collection(void **state)
{
    (void)state;
    for (int pass = 1; pass <= CUPTI_PASSES; ++pass) {
        double values[MANY][QUANTITY_COUNT];
        struct many many[MANY] = {0}, again[MANY] = {0};
        struct outcome outcome;
        cupti_set_up(NULL);
        struct counters *counters = counters_begin();
        many[MANY / 2].fails_at = pass;
        assert_int_equal(collect_many(counters, many, MANY, values, &outcome), STATUS_FAILED);
        assert_nothing(values, MANY);
        assert_int_equal(many[MANY / 2 + 1].ran, pass - 1);
        assert_false(cupti.passing);
        assert_false(counters_are_attached(counters));
        assert_int_equal(collect_many(counters, again, MANY, values, &outcome), STATUS_OK);
        assert_string_equal(text_of(&outcome), "counted");
        assert_true(values[0][QUANTITY_DRAM_READ] == CUPTI_EACH * MANY);
        counters_end(counters);
    }
}

/* CUPTI refuses a range in the middle of a pass. */
static void a_range_that_fails_ends_the_collection(void **state)
{
    (void)state;
    double values[MANY][QUANTITY_COUNT];
    struct many many[MANY] = {0};
    struct outcome outcome;
    struct counters *counters = counters_begin();
    cupti.push = CUPTI_ERROR_INVALID_OPERATION;
    cupti.push_from = MANY + 7; /* in the second pass */
    assert_int_equal(collect_many(counters, many, MANY, values, &outcome), STATUS_OK);
    assert_int_equal(outcome.code, COUNTED_REFUSED);
    assert_nothing(values, MANY);
    assert_int_equal(many[6].ran, 2);
    assert_int_equal(many[7].ran, 1);
    assert_false(counters_are_attached(counters));
    counters_end(counters);
}

static void another_number_of_ranges_shows(void **state)
{
    (void)state;
    static const struct {
        size_t ranges, dropped;
        const char *text;
    } rows[] = {{MANY - 1, 0, "incomplete: 0 ranges dropped, 19 kept for 20"},
                {MANY + 1, 0, "incomplete: 0 ranges dropped, 21 kept for 20"},
                {0, 3, "incomplete: 3 ranges dropped, 20 kept for 20"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        double values[MANY][QUANTITY_COUNT];
        struct profiled_work works[MANY];
        struct many many[MANY] = {0};
        cupti_set_up(NULL);
        struct counters *counters = counters_begin();
        for (int j = 0; j < MANY; ++j)
            works[j] = (struct profiled_work){many_prepare, many_run, &many[j], NULL};
        cupti.passes = CUPTI_PASSES * MANY;
        cupti.ranges = rows[i].ranges;
        cupti.dropped = rows[i].dropped;
        assert_string_equal(collect(counters, 0, works, MANY, values), rows[i].text);
        assert_nothing(values, MANY);
        counters_end(counters);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(many_ranges_are_counted_in_each_pass, cupti_set_up),
        cmocka_unit_test_setup(a_work_that_fails_ends_the_collection, cupti_set_up),
        cmocka_unit_test_setup(a_range_that_fails_ends_the_collection, cupti_set_up),
        cmocka_unit_test_setup(another_number_of_ranges_shows, cupti_set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
