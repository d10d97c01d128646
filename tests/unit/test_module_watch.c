/* Code that comes and goes while the collector's CUPTI stays attached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "scripted_cupti.h"
#include "scripted_modules.h"
#include "worker/cuda/profiling/collector.h"

static enum status prepare(void *argument, struct error *error)
{
    (void)argument, (void)error;
    return STATUS_OK;
}

static enum status run(void *argument, struct error *error)
{
    (void)argument, (void)error;
    ++cupti.runs;
    return STATUS_OK;
}

static const char *text_of(const struct outcome *outcome)
{
    static char text[OUTCOME_TEXT];
    outcome_format(outcome, counted_word, text);
    return text;
}

/* What came of another collection. */
static const char *collected(struct collector *collector)
{
    struct outcome outcome;
    double values[1][QUANTITY_COUNT];
    struct error error;
    const struct profiled_work work = {prepare, run, NULL, NULL};
    cupti.runs = 0;
    assert_int_equal(collector_collect(collector, 0, &work, 1, values, &outcome, &error),
                     STATUS_OK);
    return text_of(&outcome);
}

/* CUPTI would take what is loaded to the same address for what was there before. */
static void unloaded_code_begins_afresh(void **state)
{
    (void)state;
    struct outcome outcome;
    struct collector *collector = collector_open(0, NULL, &outcome);
    cupti_unload(); /* nothing has been counted yet */
    assert_string_equal(collected(collector), "counted");
    assert_string_equal(collected(collector), "counted");
    assert_int_equal(cupti.enabled, 1);
    cupti_unload();
    cupti_unload();
    assert_string_equal(collected(collector), "counted");
    assert_string_equal(collected(collector), "counted");
    assert_int_equal(cupti.enabled, 2);
    assert_true(collector_is_attached(collector));
    collector_close(collector);
    assert_int_equal(cupti.enabled, cupti.disabled);
    assert_int_equal(cupti.finalized, cupti.attached);
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
    struct outcome outcome;
    struct error error;
    double values[1][QUANTITY_COUNT];
    const struct profiled_work work = {prepare, run_and_unload, NULL, NULL};
    struct collector *collector = collector_open(0, NULL, &outcome);
    assert_int_equal(collector_collect(collector, 0, &work, 1, values, &outcome, &error),
                     STATUS_OK);
    assert_string_equal(text_of(&outcome),
                        "incomplete: a module was unloaded while its kernels were counted");
    assert_true(isnan(values[0][QUANTITY_VECTOR_FP32]));
    assert_string_equal(collected(collector), "counted");
    collector_close(collector);
}

/* Beside another tool, which has subscribed, nothing is known of modules: each collection begins afresh. */
static void what_cannot_be_watched_begins_afresh(void **state)
{
    (void)state;
    struct outcome outcome;
    struct collector *collector = collector_open(0, NULL, &outcome);
    cupti.subscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    for (int i = 1; i <= 3; ++i) {
        assert_string_equal(collected(collector), "counted");
        assert_int_equal(cupti.enabled, i);
    }
    assert_int_equal(cupti.subscribed, 0);
    collector_close(collector);
    assert_int_equal(cupti.finalized, cupti.attached);
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
