/* The profiler over a scripted CUPTI (scripted_cupti.h): attachment, counts, traces. */
#include "unit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "scripted_cupti.h"
#include "model/roof_kind.h"
#include "worker/cuda/profiling/profiler.h"

static struct profiler *profiler;

/* Behaviour of the profiler's owner and of the work. */
static struct {
    double disturbed;         /* factor of known kernels' times while CUPTI is attached */
    int disturbances;         /* number of disturbed times; 0: all */
    enum status known, later; /* status of known kernels without CUPTI, and beside it */
    enum status reserve;      /* status of the allocation */
    enum status prepare, run; /* status that the work returns */
    int judged, runs, blocks; /* calls */
} test;

static enum status status_of(enum status status, struct error *error)
{
    return status ? error_set(error, status, "as the test wants") : STATUS_OK;
}

static enum status known_times(void *argument, double times[PROFILER_TIMES], struct error *error)
{
    assert_ptr_equal(argument, &test);
    ++test.judged;
    for (int i = 0; i < PROFILER_TIMES; ++i)
        times[i] = (i + 1) * 1e-3 * (cupti.present ? test.disturbed : 1.0);
    if (cupti.present && test.disturbances && --test.disturbances == 0)
        test.disturbed = 1.0;
    return status_of(cupti.present ? test.later : test.known, error);
}

static enum status trial_reserve(void *argument, struct error *error)
{
    assert_ptr_equal(argument, &test);
    return status_of(test.reserve, error);
}

static enum status trial_run(void *argument, struct error *error)
{
    assert_ptr_equal(argument, &test);
    return STATUS_OK;
}

static enum status work_prepare(void *argument, struct error *error)
{
    return status_of(test.prepare, error);
}

static enum status work_run(void *argument, struct error *error)
{
    ++test.runs;
    cupti_launch();
    return status_of(test.run, error);
}

static enum status work_block(void *argument, struct error *error)
{
    ++test.blocks;
    return STATUS_OK;
}

static const struct profiled_work work = {work_prepare, work_run, NULL, NULL};

static int set_up(void **state)
{
    const struct profiler_host host = {known_times, trial_reserve, trial_run, &test};
    cupti_set_up(state);
    cupti.passes = 0; /* the first Stop has all passes */
    memset(&test, 0, sizeof test);
    test.disturbed = 1.0;
    profiler = profiler_open(&host);
    assert_non_null(profiler);
    return 0;
}

static int tear_down(void **state)
{
    bool tracer = cupti.tracer;
    profiler_close(profiler);
    assert_int_equal(cupti.enabled, cupti.disabled);
    assert_true(tracer || !cupti.present);
    return 0;
}

static void restart(void)
{
    tear_down(NULL);
    set_up(NULL);
}

enum attached { NOTHING, COUNTERS, TRACER };

/* Only an attached tracer has a ratio. */
static void assert_attached(enum attached attached)
{
    assert_int_equal(cupti.present, attached != NOTHING);
    assert_int_equal(cupti.tracer, attached == TRACER);
    assert_int_equal(!isnan(profiler_ratio(profiler)), attached == TRACER);
}

/* ---- steps ---- */

static struct outcome try_counters(void)
{
    struct outcome outcome;
    assert_ok(profiler_try(profiler, 0, NULL, &outcome, &failure));
    assert_true(outcome_same(&outcome, profiler_counters(profiler)));
    return outcome;
}

static enum status count_status(struct outcome *outcome)
{
    double values[1][QUANTITY_COUNT];
    enum status status = profiler_count(profiler, 0, &work, 1, NULL, 0, values, outcome, &failure);
    assert_int_equal(isnan(values[0][QUANTITY_VECTOR_FP32]),
                     status || outcome->code != COUNTED_YES);
    return status;
}

static int64_t count(void)
{
    struct outcome outcome;
    assert_int_equal(count_status(&outcome), STATUS_OK);
    return outcome.code;
}

static int64_t count_launches(void)
{
    double values[1][QUANTITY_COUNT];
    struct outcome outcome;
    const size_t launches = 1;
    enum status status =
        profiler_count(profiler, 0, &work, 1, &launches, ROOF_KINDS, values, &outcome, &failure);
    assert_int_equal(status, STATUS_OK);
    return outcome.code;
}

static enum status trace_status(struct outcome *outcome)
{
    enum status status = profiler_trace(profiler, &work, outcome, &failure);
    assert_int_equal(profiler_last_trace(profiler)->launch_count > 0,
                     status == STATUS_OK && outcome->code == TRACED_WELL);
    return status;
}

static struct outcome trace(void)
{
    struct outcome outcome;
    assert_int_equal(trace_status(&outcome), STATUS_OK);
    assert_false(cupti.tracing);
    return outcome;
}

/* Adds a kernel to the next trace. */
static scripted_kernel *add_record(const char *name, uint32_t correlation, uint64_t start,
                                   uint64_t end)
{
    scripted_kernel *kernel = &cupti.records[cupti.record_count++];
    *kernel = (scripted_kernel){.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                .name = name,
                                .correlationId = correlation,
                                .start = start,
                                .end = end,
                                .gridX = 8,
                                .gridY = 4,
                                .gridZ = 2,
                                .blockX = 128,
                                .blockY = 1,
                                .blockZ = 1,
                                .registersPerThread = 32,
                                .staticSharedMemory = 16,
                                .dynamicSharedMemory = 1024};
    return kernel;
}

static int64_t trace_one(void)
{
    cupti.record_count = 0;
    add_record("kernel", 1, 1000, 1500);
    return trace().code;
}

/* ---- attachment ---- */

static void step(char word)
{
    if (word == 'y')
        assert_int_equal(try_counters().code, COUNTED_YES);
    else if (word == 'c')
        assert_int_equal(count(), COUNTED_YES);
    else if (word == 'k')
        assert_int_equal(count_launches(), COUNTED_YES);
    else if (word == 't')
        assert_int_equal(trace_one(), TRACED_WELL);
    else if (word == 'l')
        profiler_detach_counters(profiler);
    else
        profiler_detach(profiler);
}

#define BENCH_TEST(name) TEST_WITH(name, set_up, tear_down)

/* Attaching counters or tracer detaches the other first. Counters stay until
 * profiler_detach_counters, the tracer until profiler_detach. */
BENCH_TEST(attachment_follows_the_last_request)
{
    static const struct {
        const char *steps; /* y: try, c: count, k: count launches, t: trace, l: detach counters, d:
                              detach */
        const char *attached; /* after each step: -: nothing, c: counters, t: tracer */
        double disturbed;
        int attachments, finalized, judged;
    } rows[] = {
        {"ld", "--", 1.0, 0, 0, 0},
        {"yykclldc", "cccc---c", 1.0, 2, 1, 0}, /* counters leave before times are taken */
        {"ytlctlctlc", "cttcttcttc", 1.0, 4, 6, 2},
        {"ycdtdt", "cc-t-t", 1.0, 1, 2, 2},
        {"tytk", "tctk", 1.0, 2, 3, 2},
        {"tyctyc", "-cc--c", 1.5, 2, 3, 4}, /* the tracer does not stay */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        restart();
        assert_true(profiler_counters(profiler)->code == OUTCOME_MISSING);
        test.disturbed = rows[i].disturbed;
        for (size_t j = 0; rows[i].steps[j]; ++j) {
            char attached = rows[i].attached[j];
            step(rows[i].steps[j]);
            assert_attached(attached == '-' ? NOTHING : attached == 't' ? TRACER : COUNTERS);
        }
        assert_int_equal(cupti.attached, rows[i].attachments);
        assert_int_equal(cupti.finalized, rows[i].finalized);
        assert_int_equal(test.judged, rows[i].judged);
    }
}

/* The first trace decides whether the tracer stays: it times known kernels without and beside it.
 * The best of three times counts, since a single disturbance may be noise. */
BENCH_TEST(a_tracer_that_disturbs_nothing_stays)
{
    static const struct {
        double disturbed;
        int disturbances, judged;
        double ratio; /* 0: the tracer does not stay */
    } rows[] = {{1.0, 0, 2, 1.0}, {1.049, 0, 2, 1.049}, {1.2, 2, 4, 1.0}, {1.2, 0, 4, 0.0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        restart();
        test.disturbed = rows[i].disturbed;
        test.disturbances = rows[i].disturbances;
        for (int traces = 1; traces <= 2; ++traces) {
            assert_int_equal(trace_one(), TRACED_WELL);
            assert_attached(rows[i].ratio > 0.0 ? TRACER : NOTHING);
            assert_int_equal(test.judged, rows[i].judged);
            assert_int_equal(cupti.activity_disabled, traces);
            assert_int_equal(cupti.finalized, rows[i].ratio > 0.0 ? 0 : traces);
        }
        if (rows[i].ratio > 0.0)
            assert_true(fabs(profiler_ratio(profiler) - rows[i].ratio) < 1e-9);
    }
}

/* Without times of known kernels, the next trace decides. */
BENCH_TEST(without_known_kernels_nothing_is_decided)
{
    test.known = STATUS_UNSUPPORTED; /* a device too full for them */
    assert_int_equal(trace_one(), TRACED_WELL);
    assert_attached(NOTHING);
    test.known = STATUS_OK;
    assert_int_equal(trace_one(), TRACED_WELL);
    assert_attached(TRACER);
}

/* ---- refusals ---- */

BENCH_TEST(refused_counters_are_not_tried_again)
{
    assert_int_equal(trace_one(), TRACED_WELL);
    cupti.supported = CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED;
    assert_int_equal(try_counters().code, COUNTED_REFUSED);
    cupti.supported = CUPTI_SUCCESS;
    assert_int_equal(try_counters().code, COUNTED_REFUSED);
    assert_int_equal(cupti.attached, 1);
    assert_attached(NOTHING);
    assert_int_equal(trace_one(), TRACED_WELL);
    assert_attached(TRACER);
    assert_int_equal(test.judged, 2); /* decided by the first trace */
}

BENCH_TEST(counters_without_memory_are_refused)
{
    test.reserve = STATUS_UNSUPPORTED;
    struct outcome outcome = try_counters();
    assert_int_equal(outcome.code, COUNTED_REFUSED);
    assert_string_equal(outcome.reason, "as the test wants");
    assert_attached(NOTHING);
}

BENCH_TEST(without_tensor_metrics_the_others_are_counted)
{
    cupti.unknown = "path_tensor";
    assert_int_equal(try_counters().code, COUNTED_YES);
    assert_int_equal(count(), COUNTED_YES);
}

/* The refusal comes when counting starts, with all tensors and with none. */
BENCH_TEST(a_late_refusal_is_a_refusal)
{
    cupti.trouble.start = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_int_equal(try_counters().code, COUNTED_REFUSED);
    assert_attached(NOTHING);
}

BENCH_TEST(refused_traces_are_not_tried_again)
{
    CUptiResult *const places[] = {&cupti.register_callbacks, &cupti.activity_enable};
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        restart();
        *places[i] = CUPTI_ERROR_NOT_COMPATIBLE;
        for (int j = 0, calls = 0; j < 2; ++j) {
            struct outcome outcome = trace();
            assert_int_equal(outcome.code, TRACED_REFUSED);
            assert_string_equal(outcome.reason, "in the way");
            assert_attached(NOTHING);
            assert_int_equal(test.runs, 0);
            assert_true(j == 0 || calls == cupti.activity_disabled + cupti.finalized);
            calls = cupti.activity_disabled + cupti.finalized;
        }
    }
}

BENCH_TEST(a_trace_that_fails_beside_cupti_is_repeated_without)
{
    assert_int_equal(trace_one(), TRACED_WELL);
    cupti.in_the_way = true;
    for (int runs = 2; runs <= 3; ++runs) { /* the refused trace did not run */
        assert_int_equal(trace_one(), TRACED_WELL);
        assert_attached(NOTHING);
        assert_int_equal(test.runs, runs);
    }
}

/* ---- traces ---- */

static void assert_seconds(double seconds, double expected)
{
    assert_true(fabs(seconds - expected) < 1e-15);
}

BENCH_TEST(incomplete_traces_say_why)
{
    static const struct {
        const char *reason;
        size_t dropped;
        CUptiResult flush;
        uint32_t records;
        uint64_t time;
    } rows[] = {
        {"CUPTI dropped records", 3, CUPTI_SUCCESS, 2, 10},
        {"a kernel without timestamps", 0, CUPTI_SUCCESS, 1, 0},
        {"it saw no kernels", 0, CUPTI_SUCCESS, 0, 0},
        {"some failure", 0, CUPTI_ERROR_UNKNOWN, 1, 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        restart();
        for (uint32_t j = 0; j < rows[i].records; ++j)
            add_record("kernel", j, 1000, 1000 + rows[i].time);
        cupti.records_dropped = rows[i].dropped;
        cupti.flush = rows[i].flush;
        struct outcome outcome = trace();
        assert_int_equal(outcome.code, TRACED_BADLY);
        assert_string_equal(outcome.reason, rows[i].reason);
        assert_int_equal(test.runs, 2); /* repeated with nothing attached */
        assert_attached(NOTHING);
        cupti.records_dropped = 0;
        cupti.flush = CUPTI_SUCCESS;
        assert_int_equal(trace_one(), TRACED_WELL); /* the next trace may be complete */
    }
}

/* CUPTI delivers records in the order of their ends. */
BENCH_TEST(kernels_are_known_by_name_and_shape)
{
    static const struct {
        uint32_t correlation;
        size_t kernel;
    } order[] = {{10, 1}, {20, 0}, {30, 0}, {40, 2}};
    add_record("_Z4gemmPf", 30, 1000, 1500);
    add_record("copy", 10, 1000, 1100);
    add_record("_Z4gemmPf", 20, 1000, 1700);
    scripted_kernel *last_kernel = add_record("_Z4gemmPf", 40, 1000, 1050);
    last_kernel->blockX = 256;
    last_kernel->clusterX = 4;
    last_kernel->clusterY = last_kernel->clusterZ = 1;
    last_kernel->maxActiveClusters = 30;
    assert_int_equal(trace().code, TRACED_WELL);
    const struct trace last = *profiler_last_trace(profiler);
    assert_int_equal(last.kernel_count, 3);
    assert_string_equal(last.kernels[0].kernel.name, "gemm(float*)");
    assert_int_equal(last.kernels[0].kernel.count, 2);
    assert_seconds(last.kernels[0].kernel.time, 1200e-9);
    assert_int_equal(last.kernels[0].kernel.grid_x, 8);
    assert_int_equal(last.kernels[0].kernel.dynamic_shared, 1024);
    assert_int_equal(last.kernels[0].kernel.cluster, 1);
    assert_string_equal(last.kernels[1].kernel.name, "copy");
    assert_int_equal(last.kernels[2].kernel.block_x, 256);
    assert_int_equal(last.kernels[2].kernel.cluster, 4);
    assert_int_equal(last.kernels[2].clusters_most, 30);
    assert_int_equal(last.launch_count, sizeof order / sizeof *order);
    for (size_t i = 0; i < last.launch_count; ++i) {
        assert_int_equal(last.launches[i].correlation, order[i].correlation);
        assert_int_equal(last.launches[i].kernel, order[i].kernel);
    }
}

/* Two of three kernels overlap. The gap is from 1700 to 2000. */
BENCH_TEST(overlapping_kernels_count_once)
{
    add_record("first", 1, 1000, 1500);
    add_record("second", 2, 1300, 1700);
    add_record("third", 3, 2000, 2050);
    assert_int_equal(trace().code, TRACED_WELL);
    assert_seconds(profiler_last_trace(profiler)->busy_time, 750e-9);
    assert_seconds(profiler_last_trace(profiler)->span, 1050e-9);
}

/* The blocking kernel is launched first, and is not part of the work. */
BENCH_TEST(the_blocking_kernel_is_not_in_the_trace)
{
    const struct profiled_work blocked = {work_prepare, work_run, NULL, work_block};
    struct outcome outcome;
    add_record("first", 3, 1000, 1500);
    add_record("wait", 1, 1000, 101000);
    add_record("second", 2, 1000, 1400);
    add_record("first", 4, 1000, 1500);
    assert_ok(profiler_trace(profiler, &blocked, &outcome, &failure));
    assert_int_equal(outcome.code, TRACED_WELL);
    assert_int_equal(test.blocks, 1);
    const struct trace last = *profiler_last_trace(profiler);
    assert_int_equal(last.kernel_count, 2);
    assert_string_equal(last.kernels[0].kernel.name, "first");
    assert_int_equal(last.kernels[0].kernel.count, 2);
    assert_string_equal(last.kernels[1].kernel.name, "second");
    assert_int_equal(last.launch_count, 3);
    assert_int_equal(last.launches[0].kernel, 1);
    assert_int_equal(last.launches[1].kernel, 0);
    assert_seconds(last.busy_time, 500e-9);

    cupti.record_count = 0;
    add_record("wait", 1, 1000, 101000);
    assert_ok(profiler_trace(profiler, &blocked, &outcome, &failure));
    assert_string_equal(outcome.reason, "it saw no kernels");
}

/* ---- failures of the work, and a device that is lost ---- */

BENCH_TEST(work_that_fails_leaves_nothing_attached)
{
    enum status *const places[] = {&test.prepare, &test.run};
    struct outcome outcome;
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        *places[i] = STATUS_FAILED;
        assert_int_equal(trace_status(&outcome), STATUS_FAILED);
        assert_attached(NOTHING);
        *places[i] = STATUS_OK;
    }
    assert_int_equal(trace_one(), TRACED_WELL);
    assert_attached(TRACER);
    step('y');
    step('c');
    test.run = STATUS_FAILED;
    assert_int_equal(count_status(&outcome), STATUS_FAILED);
    assert_attached(NOTHING);
    test.run = STATUS_OK;
    step('c');
    assert_attached(COUNTERS);
}

/* Once the device is lost, no function of CUPTI is called before the test ends. */
BENCH_TEST(a_lost_device_is_reported)
{
    static const struct {
        enum status *place;
        bool counted;
        int runs; /* runs of the work; the first run succeeds if `counted` */
    } rows[] = {{&test.run, true, 2},
                {&test.run, false, 1},
                {&test.known, false, 0},
                {&test.later, false, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct outcome outcome;
        restart();
        add_record("kernel", 1, 1000, 1500);
        if (rows[i].counted) {
            step('y');
            step('c');
        }
        int calls = cupti.finalized + cupti.disabled;
        *rows[i].place = STATUS_DEVICE;
        if (rows[i].counted)
            assert_int_equal(count_status(&outcome), STATUS_DEVICE);
        else
            assert_int_equal(profiler_trace(profiler, &work, &outcome, &(struct error){0}),
                             STATUS_DEVICE);
        assert_int_equal(cupti.finalized + cupti.disabled, calls);
        assert_int_equal(test.runs, rows[i].runs);
    }
}
