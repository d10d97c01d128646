#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "collector_bench.h"
#include "scripted_cupti.h"

/* What CUPTI does to begin a pass must not come between this and the work. */
static enum status work_prepare(void *argument, struct error *error)
{
    (void)argument, (void)error;
    assert_true(cupti.passing && !cupti.within);
    return STATUS_OK;
}

static enum status work_run(void *argument, struct error *error)
{
    (void)argument, (void)error;
    assert_true(cupti.within == (cupti.range == CUPTI_UserRange));
    ++cupti.runs;
    return STATUS_OK;
}

const struct profiled_work bench_work = {work_prepare, work_run, NULL, NULL};

struct counters *counters_begin(void)
{
    struct outcome refused;
    struct counters *counters = counters_open(0, NULL, &refused);
    assert_non_null(counters);
    return counters;
}

void counters_end(struct counters *counters)
{
    counters_close(counters);
    assert_int_equal(cupti.enabled, cupti.disabled);
    assert_int_equal(cupti.finalized, cupti.attached);
}

const char *text_of(const struct outcome *outcome)
{
    static char text[OUTCOME_TEXT];
    outcome_format(outcome, counted_word, text);
    return text;
}

const char *collect(struct counters *counters, unsigned tensors,
                    const struct profiled_work *works, size_t count,
                    double (*values)[QUANTITY_COUNT])
{
    struct outcome outcome;
    struct error error;
    cupti.runs = 0;
    assert_int_equal(counters_collect(counters, tensors, works, count, values, &outcome, &error),
                     STATUS_OK);
    return text_of(&outcome);
}

const char *collect_launches(struct counters *counters, size_t launches, size_t most,
                             double (*values)[QUANTITY_COUNT])
{
    struct outcome outcome;
    struct error error;
    cupti.runs = 0;
    assert_int_equal(counters_collect_launches(counters, 0, &bench_work, launches, most, values,
                                                &outcome, &error),
                     STATUS_OK);
    return text_of(&outcome);
}

const char *collect_again(struct counters *counters)
{
    double values[1][QUANTITY_COUNT];
    return collect(counters, 0, &bench_work, 1, values);
}

const char *collect_launch_again(struct counters *counters)
{
    double values[1][QUANTITY_COUNT];
    return collect_launches(counters, 1, 0, values);
}
