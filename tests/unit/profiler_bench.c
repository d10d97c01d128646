#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "profiler_bench.h"
#include "scripted_cupti.h"

struct profiler *profiler;

struct profiler_script test;

static enum status tell(enum status status, struct error *error)
{
    return status ? error_set(error, status, "as the test wants") : STATUS_OK;
}

static enum status judge_measure(void *argument, double times[PROFILER_TIMES], struct error *error)
{
    assert_ptr_equal(argument, &test);
    ++test.judged;
    for (int i = 0; i < PROFILER_TIMES; ++i)
        times[i] = (i + 1) * 1e-3 * (cupti.present ? test.disturbed : 1.0);
    if (cupti.present && test.disturbances && --test.disturbances == 0)
        test.disturbed = 1.0;
    return tell(cupti.present && test.judge_later ? test.judge_later : test.judge, error);
}

static enum status trial_reserve(void *argument, struct error *error)
{
    assert_ptr_equal(argument, &test);
    return tell(test.reserve, error);
}

static enum status trial_run(void *argument, struct error *error)
{
    assert_ptr_equal(argument, &test);
    (void)error;
    return STATUS_OK;
}

enum status work_prepare(void *argument, struct error *error)
{
    (void)argument;
    ++test.prepared;
    return tell(test.prepare, error);
}

enum status work_run(void *argument, struct error *error)
{
    (void)argument;
    ++test.runs;
    if (test.start_from_now)
        cupti.start = test.start_from_now;
    return tell(test.run, error);
}

const struct profiled_work work = {work_prepare, work_run, NULL, NULL};

static void open_profiler(void)
{
    const struct profiler_host host = {judge_measure, trial_reserve, trial_run, &test};
    profiler = profiler_open(&host);
    assert_non_null(profiler);
}

int profiler_set_up(void **state)
{
    cupti_set_up(state);
    cupti.passes = 0; /* one is enough */
    cupti.ranges = 0; /* as many as are pushed */
    memset(&test, 0, sizeof test);
    test.disturbed = 1.0;
    open_profiler();
    return 0;
}

/* The counters never stay behind. */
int profiler_tear_down(void **state)
{
    (void)state;
    bool tracer = profiler_attached(profiler) == PROFILER_TRACER;
    profiler_close(profiler);
    assert_int_equal(cupti.enabled, cupti.disabled);
    assert_true(tracer || !cupti.present);
    return 0;
}

void assert_attached(enum profiler_attached attached)
{
    assert_int_equal(profiler_attached(profiler), attached);
    assert_int_equal(cupti.present, attached != PROFILER_NOTHING);
    assert_int_equal(!isnan(profiler_ratio(profiler)), attached == PROFILER_TRACER);
}

/* ---- steps ---- */

struct outcome try_counters(void)
{
    struct outcome outcome;
    struct error error;
    assert_int_equal(profiler_try(profiler, 0, NULL, &outcome, &error), STATUS_OK);
    assert_true(outcome_same(&outcome, profiler_counters(profiler)));
    return outcome;
}

struct outcome count(unsigned tensors)
{
    struct outcome outcome;
    struct error error;
    double values[1][QUANTITY_COUNT];
    assert_int_equal(profiler_count(profiler, tensors, &work, 1, values, &outcome, &error),
                     STATUS_OK);
    assert_int_equal(isnan(values[0][QUANTITY_VECTOR_FP32]), outcome.code != COUNTED_YES);
    return outcome;
}

void count_well(unsigned tensors)
{
    assert_int_equal(count(tensors).code, COUNTED_YES);
}

void begin_counting(void)
{
    assert_int_equal(try_counters().code, COUNTED_YES);
    count_well(0);
}

struct outcome trace(void)
{
    struct outcome outcome;
    struct error error;
    assert_int_equal(profiler_trace(profiler, &work, &outcome, &error), STATUS_OK);
    assert_int_equal(profiler_last_trace(profiler)->launch_count > 0, outcome.code == TRACED_WELL);
    assert_false(cupti.tracing);
    return outcome;
}

void add_record(const char *name, uint32_t correlation, uint64_t nanoseconds)
{
    scripted_kernel *kernel = &cupti.records[cupti.record_count++];
    *kernel = (scripted_kernel){.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                .name = name,
                                .correlationId = correlation,
                                .start = 1000,
                                .end = 1000 + nanoseconds,
                                .gridX = 8,
                                .gridY = 4,
                                .gridZ = 2,
                                .blockX = 128,
                                .blockY = 1,
                                .blockZ = 1,
                                .registersPerThread = 32,
                                .staticSharedMemory = 16,
                                .dynamicSharedMemory = 1024};
}

void trace_well(void)
{
    cupti.record_count = 0;
    add_record("kernel", 1, 500);
    assert_int_equal(trace().code, TRACED_WELL);
}
