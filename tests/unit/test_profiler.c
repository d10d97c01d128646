/* The profiler's life cycle, and tracing: the real room over a scripted CUPTI (scripted_cupti.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "scripted_cupti.h"
#include "worker/cuda/profiling/profiler.h"

static struct profiler *profiler;

/* What the callbacks do. */
static struct {
    double disturbed;                  /* factor of known kernels' times while CUPTI is there */
    enum status judge, reserve;        /* of known kernels, and of the trial's memory, */
    enum status prepare, run;          /* and of the work; each but STATUS_OK with an error */
    int judged, prepared, runs, holds; /* how often they were called */
    CUptiResult start_from_now; /* what the first run of the work makes of all later starts */
} test;

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
    return tell(test.judge, error);
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

static enum status work_prepare(void *argument, struct error *error)
{
    (void)argument;
    ++test.prepared;
    return tell(test.prepare, error);
}

static enum status work_run(void *argument, struct error *error)
{
    (void)argument;
    ++test.runs;
    if (test.start_from_now)
        cupti.start = test.start_from_now;
    return tell(test.run, error);
}

static const struct profiled_work work = {work_prepare, work_run, NULL, NULL};

static void open_profiler(bool judged)
{
    const struct profiler_judge judge = {judged ? judge_measure : NULL, &test};
    const struct profiler_trial trial = {trial_reserve, trial_run, &test};
    profiler = profiler_open(&judge, &trial);
    assert_non_null(profiler);
}

static int set_up(void **state)
{
    cupti_set_up(state);
    cupti.passes = 0; /* one is enough */
    cupti.ranges = 0; /* as many as are pushed */
    memset(&test, 0, sizeof test);
    test.disturbed = 1.0;
    open_profiler(true);
    return 0;
}

/* The counters never stay behind. */
static int tear_down(void **state)
{
    (void)state;
    bool tracer = profiler_state(profiler) == PROFILER_TRACER_STAYS;
    profiler_close(profiler);
    assert_int_equal(cupti.enabled, cupti.disabled);
    assert_true(tracer || !cupti.present);
    return 0;
}

static void assert_state(enum profiler_state state)
{
    bool attached = state == PROFILER_ON_TRIAL || state == PROFILER_TRACER_STAYS ||
                    state == PROFILER_COUNTERS_STAY;
    bool stays = attached && state != PROFILER_ON_TRIAL;
    assert_int_equal(profiler_state(profiler), state);
    assert_int_equal(cupti.present, attached);
    assert_int_equal(!isnan(profiler_ratio(profiler)), stays);
}

/* ---- steps ---- */

static struct outcome try_counters(void)
{
    struct outcome outcome;
    struct error error;
    assert_int_equal(profiler_try(profiler, 0, NULL, &outcome, &error), STATUS_OK);
    assert_true(outcome_same(&outcome, profiler_counters(profiler)));
    return outcome;
}

static struct outcome count(unsigned tensors)
{
    struct outcome outcome;
    struct error error;
    double values[1][QUANTITY_COUNT];
    assert_int_equal(profiler_count(profiler, tensors, &work, 1, values, &outcome, &error),
                     STATUS_OK);
    assert_int_equal(isnan(values[0][QUANTITY_VECTOR_FP32]), outcome.code != COUNTED_YES);
    assert_int_equal(profiler_review(profiler, &error), STATUS_OK);
    return outcome;
}

static struct outcome collect(void)
{
    struct outcome outcome;
    struct error error;
    double values[1][QUANTITY_COUNT];
    assert_int_equal(profiler_collect(profiler, 0, &work, 1, values, &outcome, &error), STATUS_OK);
    return outcome;
}

static void count_well(unsigned tensors)
{
    assert_int_equal(count(tensors).code, COUNTED_YES);
}

/* As a worker does it: preflight, then the first row. */
static void begin_counting(void)
{
    assert_int_equal(try_counters().code, COUNTED_YES);
    profiler_leave(profiler);
    count_well(0);
}

static struct outcome trace(void)
{
    struct outcome outcome;
    struct error error;
    assert_int_equal(profiler_trace(profiler, &work, &outcome, &error), STATUS_OK);
    assert_int_equal(profiler_last_trace(profiler).launch_count > 0, outcome.code == TRACED_WELL);
    assert_false(cupti.tracing);
    return outcome;
}

static void add_record(const char *name, uint32_t correlation, uint64_t nanoseconds)
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

static void trace_well(void)
{
    cupti.record_count = 0;
    add_record("kernel", 1, 500);
    assert_int_equal(trace().code, TRACED_WELL);
}

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
        {PROFILER_COUNTERS_LOST, PROFILER_LEAVES},
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
    test.disturbed = 1.019;
    begin_counting();
    assert_state(PROFILER_COUNTERS_STAY);
    assert_true(fabs(profiler_ratio(profiler) - 1.019) < 1e-9);
}

static void counters_that_disturb_times_leave_for_good(void **state)
{
    (void)state;
    test.disturbed = 1.03;
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
    trace_well(); /* attaches and detaches */
    assert_state(PROFILER_COUNTERS_LOST);
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

static void works_are_counted_in_one_collection(void **state)
{
    (void)state;
    enum { WORKS = 3 };
    const struct profiled_work works[WORKS] = {work, work, work};
    double values[WORKS][QUANTITY_COUNT];
    struct outcome outcome;
    struct error error;
    begin_counting();
    int attached = cupti.attached;
    assert_int_equal(profiler_count(profiler, 0, works, WORKS, values, &outcome, &error),
                     STATUS_OK);
    assert_int_equal(outcome.code, COUNTED_YES);
    for (int i = 0; i < WORKS; ++i)
        assert_true(values[i][QUANTITY_DRAM_READ] == CUPTI_EACH * (WORKS - i));
    assert_int_equal(cupti.attached, attached);
}

/* Whether what stays attached counts the same again, a few works show. */
static void few_of_many_works_are_counted_twice(void **state)
{
    (void)state;
    enum { WORKS = 20, TRIAL = 1, AGAIN = 4 };
    struct profiled_work works[WORKS];
    double values[WORKS][QUANTITY_COUNT];
    struct outcome outcome;
    struct error error;
    for (int i = 0; i < WORKS; ++i)
        works[i] = work;
    assert_int_equal(try_counters().code, COUNTED_YES);
    profiler_leave(profiler);
    int pushed = cupti.pushed;
    assert_int_equal(profiler_count(profiler, 0, works, WORKS, values, &outcome, &error),
                     STATUS_OK);
    assert_int_equal(outcome.code, COUNTED_YES);
    assert_state(PROFILER_COUNTERS_STAY);
    assert_int_equal(cupti.pushed - pushed, WORKS + TRIAL + AGAIN);
    assert_false(isnan(values[WORKS - 1][QUANTITY_DRAM_READ]));
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

/* ---- traces ---- */

static void a_tracer_stays_that_disturbs_nothing(void **state)
{
    (void)state;
    trace_well();
    assert_state(PROFILER_TRACER_STAYS);
    assert_true(profiler_ratio(profiler) == 1.0);
    trace_well();
    assert_state(PROFILER_TRACER_STAYS);
    assert_int_equal(test.judged, 2);
    assert_int_equal(cupti.finalized, 0);
    assert_int_equal(cupti.activity_disabled, 2);
}

static void a_tracer_that_disturbs_times_leaves_for_good(void **state)
{
    (void)state;
    test.disturbed = 1.2;
    for (int i = 1; i <= 2; ++i) {
        trace_well();
        assert_state(PROFILER_LEAVES);
        assert_int_equal(cupti.finalized, i);
    }
    assert_int_equal(test.judged, 2);
}

static void a_trace_that_is_in_the_way_is_repeated_without(void **state)
{
    (void)state;
    trace_well();
    cupti.in_the_way = true;
    trace_well();
    assert_state(PROFILER_LEAVES);
    assert_int_equal(test.runs, 2); /* the one that was refused did not run */
    trace_well();
    assert_state(PROFILER_LEAVES);
}

static void counters_in_the_way_of_a_trace_leave_for_good(void **state)
{
    (void)state;
    begin_counting();
    cupti.in_the_way = true;
    trace_well();
    assert_state(PROFILER_LEAVES);
    count_well(0);
    assert_state(PROFILER_LEAVES);
}

/* Once: tracing switches more of CUPTI on, and off again. */
static void counters_are_judged_again_after_a_trace(void **state)
{
    (void)state;
    begin_counting();
    trace_well();
    assert_state(PROFILER_COUNTERS_STAY);
    assert_int_equal(test.judged, 3);
    trace_well();
    assert_int_equal(test.judged, 3);
    tear_down(NULL);
    set_up(NULL);
    begin_counting();
    test.disturbed = 1.1;
    trace_well();
    assert_state(PROFILER_LEAVES);
}

static void the_tracer_leaves_when_counters_are_tried(void **state)
{
    (void)state;
    trace_well();
    begin_counting();
    assert_state(PROFILER_COUNTERS_STAY);
    tear_down(NULL);
    set_up(NULL);
    trace_well();
    cupti.supported = CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED;
    assert_int_equal(try_counters().code, COUNTED_REFUSED);
    assert_state(PROFILER_LEAVES);
}

static void a_tracer_that_left_does_not_come_back_with_refused_counters(void **state)
{
    (void)state;
    test.disturbed = 1.2;
    trace_well();
    test.reserve = STATUS_UNSUPPORTED;
    assert_int_equal(try_counters().code, COUNTED_REFUSED);
    assert_state(PROFILER_LEAVES);
}

static void refused_traces_are_told_once(void **state)
{
    (void)state;
    CUptiResult *const places[] = {&cupti.register_callbacks, &cupti.activity_enable};
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        tear_down(NULL);
        set_up(NULL);
        *places[i] = CUPTI_ERROR_NOT_COMPATIBLE;
        add_record("kernel", 1, 500);
        struct outcome outcome = trace();
        assert_int_equal(outcome.code, TRACED_REFUSED);
        assert_string_equal(outcome.reason, "in the way");
        assert_state(PROFILER_LEAVES);
        int calls = cupti.activity_enabled + cupti.activity_disabled + cupti.finalized;
        assert_true(trace().code == OUTCOME_MISSING);
        assert_int_equal(cupti.activity_enabled + cupti.activity_disabled + cupti.finalized, calls);
        assert_int_equal(test.runs, 0);
    }
}

static void incomplete_traces_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *reason;
        size_t dropped;
        CUptiResult flush;
        int records;
        uint64_t time;
    } rows[] = {
        {"CUPTI dropped records", 3, CUPTI_SUCCESS, 2, 10},
        {"a kernel without timestamps", 0, CUPTI_SUCCESS, 1, 0},
        {"it saw no kernels", 0, CUPTI_SUCCESS, 0, 0},
        {"some failure", 0, CUPTI_ERROR_UNKNOWN, 1, 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        tear_down(NULL);
        set_up(NULL);
        for (int j = 0; j < rows[i].records; ++j)
            add_record("kernel", (uint32_t)j, rows[i].time);
        cupti.records_dropped = rows[i].dropped;
        cupti.flush = rows[i].flush;
        struct outcome outcome = trace();
        assert_int_equal(outcome.code, TRACED_BADLY);
        assert_string_equal(outcome.reason, rows[i].reason);
        assert_int_equal(test.runs, 2); /* again, with nothing in the way */
        assert_state(PROFILER_LEAVES);
        cupti.records_dropped = 0;
        cupti.flush = CUPTI_SUCCESS;
        trace_well(); /* the next one may be complete */
    }
}

/* CUPTI hands them over as they end; what is neither a kernel nor new makes no row. */
static void kernels_are_known_by_name_and_shape(void **state)
{
    (void)state;
    add_record("_Z4gemmPf", 30, 500);
    add_record("copy", 10, 100);
    add_record("_Z4gemmPf", 20, 700);
    add_record("_Z4gemmPf", 40, 50);
    cupti.records[3].blockX = 256;
    add_record("no kernel", 50, 1);
    cupti.records[4].kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    assert_int_equal(trace().code, TRACED_WELL);
    const struct trace last = profiler_last_trace(profiler);
    assert_int_equal(last.kernel_count, 3);
    assert_string_equal(last.kernels[0].name, "gemm(float*)");
    assert_int_equal(last.kernels[0].count, 2);
    assert_true(fabs(last.kernels[0].time - 1200e-9) < 1e-15);
    assert_int_equal(last.kernels[0].grid_x, 8);
    assert_int_equal(last.kernels[0].dynamic_shared, 1024);
    assert_string_equal(last.kernels[1].name, "copy");
    assert_int_equal(last.kernels[2].block_x, 256);
    assert_int_equal(last.kernels[0].cluster, 1);
    static const struct {
        uint32_t correlation;
        size_t kernel;
    } order[] = {{10, 1}, {20, 0}, {30, 0}, {40, 2}};
    assert_int_equal(last.launch_count, sizeof order / sizeof *order);
    for (size_t i = 0; i < last.launch_count; ++i) {
        assert_int_equal(last.launches[i].correlation, order[i].correlation);
        assert_int_equal(last.launches[i].kernel, order[i].kernel);
    }
}

/* Two of three run at the same time: that counts once. The gap is from 1700 to 2000. */
static void times_of_kernels_at_the_same_time_count_once(void **state)
{
    (void)state;
    add_record("first", 1, 500);
    add_record("second", 2, 400);
    cupti.records[1].start = 1300;
    cupti.records[1].end = 1700;
    add_record("third", 3, 50);
    cupti.records[2].start = 2000;
    cupti.records[2].end = 2050;
    cupti.records[2].clusterX = 4;
    cupti.records[2].clusterY = cupti.records[2].clusterZ = 1;
    cupti.records[2].maxActiveClusters = 30;
    assert_int_equal(trace().code, TRACED_WELL);
    const struct trace last = profiler_last_trace(profiler);
    assert_true(fabs(last.busy_time - 750e-9) < 1e-15);
    assert_true(fabs(last.span - 1050e-9) < 1e-15);
    assert_int_equal(last.kernels[2].cluster, 4);
    assert_int_equal(last.kernels[2].clusters_most, 30);
}

static enum status hold(void *argument, struct error *error)
{
    (void)argument;
    (void)error;
    ++test.holds;
    return STATUS_OK;
}

/* What keeps the device waiting is launched first, and is no part of the work. */
static void the_wait_before_the_work_is_not_in_the_trace(void **state)
{
    (void)state;
    const struct profiled_work held = {work_prepare, work_run, NULL, hold};
    struct outcome outcome;
    struct error error;
    add_record("first", 3, 500);
    add_record("wait", 1, 100000);
    add_record("second", 2, 400);
    add_record("first", 4, 500);
    assert_int_equal(profiler_trace(profiler, &held, &outcome, &error), STATUS_OK);
    assert_int_equal(outcome.code, TRACED_WELL);
    assert_int_equal(test.holds, 1);
    const struct trace last = profiler_last_trace(profiler);
    assert_int_equal(last.kernel_count, 2);
    assert_string_equal(last.kernels[0].name, "first");
    assert_int_equal(last.kernels[0].count, 2);
    assert_string_equal(last.kernels[1].name, "second");
    assert_int_equal(last.launch_count, 3);
    assert_int_equal(last.launches[0].kernel, 1);
    assert_int_equal(last.launches[1].kernel, 0);
    assert_true(fabs(last.busy_time - 500e-9) < 1e-15);

    cupti.record_count = 0;
    add_record("wait", 1, 100000);
    assert_int_equal(profiler_trace(profiler, &held, &outcome, &error), STATUS_OK);
    assert_int_equal(outcome.code, TRACED_BADLY);
    assert_string_equal(outcome.reason, "it saw no kernels");
}

static void launches_of_the_trace_are_counted_by_themselves(void **state)
{
    (void)state;
    enum { LAUNCHES = 2 };
    double values[LAUNCHES][QUANTITY_COUNT];
    struct outcome outcome;
    struct error error;
    begin_counting();
    add_record("a", 2, 5);
    add_record("b", 1, 5);
    assert_int_equal(trace().code, TRACED_WELL);
    cupti.ranges = LAUNCHES;
    assert_int_equal(
        profiler_count_launches(profiler, 0, &work, LAUNCHES, 0, values, &outcome, &error),
        STATUS_OK);
    assert_int_equal(outcome.code, COUNTED_YES);
    assert_int_equal(cupti.range, CUPTI_AutoRange);
    for (int i = 0; i < LAUNCHES; ++i)
        assert_true(values[i][QUANTITY_DRAM_READ] == CUPTI_EACH * (i + 1));
    assert_state(PROFILER_COUNTERS_STAY);
}

/* ---- failures of the work, and a device that is lost ---- */

static void a_trace_that_fails_before_it_is_decided_leaves_nothing(void **state)
{
    (void)state;
    enum status *const places[] = {&test.prepare, &test.run};
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        struct outcome outcome;
        struct error error;
        *places[i] = STATUS_FAILED;
        assert_int_equal(profiler_trace(profiler, &work, &outcome, &error), STATUS_FAILED);
        assert_int_equal(profiler_last_trace(profiler).launch_count, 0);
        assert_state(PROFILER_UNDECIDED);
        *places[i] = STATUS_OK;
    }
    trace_well();
    assert_state(PROFILER_TRACER_STAYS);
}

static void work_that_fails_loses_the_counters_until_the_next(void **state)
{
    (void)state;
    double values[1][QUANTITY_COUNT];
    struct outcome outcome;
    struct error error;
    begin_counting();
    test.run = STATUS_FAILED;
    assert_int_equal(profiler_count(profiler, 0, &work, 1, values, &outcome, &error),
                     STATUS_FAILED);
    assert_string_equal(error.text, "as the test wants");
    assert_state(PROFILER_COUNTERS_LOST);
    test.run = STATUS_OK;
    count_well(0);
    assert_state(PROFILER_COUNTERS_STAY);
}

/* Nothing of CUPTI is called any more, until the end. */
static void a_device_lost_while_it_counts_is_told(void **state)
{
    (void)state;
    double values[1][QUANTITY_COUNT];
    struct outcome outcome;
    struct error error;
    begin_counting();
    int finalized = cupti.finalized, disabled = cupti.disabled;
    test.run = STATUS_DEVICE;
    assert_int_equal(profiler_count(profiler, 0, &work, 1, values, &outcome, &error),
                     STATUS_DEVICE);
    assert_int_equal(cupti.finalized, finalized);
    assert_int_equal(cupti.disabled, disabled);
    test.run = STATUS_OK;
}

static void a_device_lost_while_it_is_traced_is_told(void **state)
{
    (void)state;
    struct outcome outcome;
    struct error error;
    test.run = STATUS_DEVICE;
    assert_int_equal(profiler_trace(profiler, &work, &outcome, &error), STATUS_DEVICE);
    assert_int_equal(cupti.finalized, 0);
    assert_int_equal(test.judged, 1);
    cupti.present = false; /* with the process */
}

static void a_device_lost_while_it_is_judged_is_told(void **state)
{
    (void)state;
    double values[1][QUANTITY_COUNT];
    struct outcome outcome;
    struct error error;
    try_counters();
    profiler_leave(profiler);
    test.judge = STATUS_DEVICE;
    assert_int_equal(profiler_count(profiler, 0, &work, 1, values, &outcome, &error),
                     STATUS_DEVICE);
    assert_int_equal(test.runs, 0);
    test.judge = STATUS_OK;
    begin_counting();
    test.judge = STATUS_DEVICE;
    int finalized = cupti.finalized;
    count_well(0);
    cupti.record_count = 0;
    add_record("kernel", 1, 500);
    assert_int_equal(profiler_trace(profiler, &work, &outcome, &error), STATUS_DEVICE);
    assert_int_equal(cupti.finalized, finalized);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

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
        TEST(works_are_counted_in_one_collection),
        TEST(few_of_many_works_are_counted_twice),
        TEST(refused_counters_are_not_tried_again),
        TEST(counters_without_memory_are_refused),
        TEST(a_refusal_that_shows_late_is_one),
        TEST(a_tracer_stays_that_disturbs_nothing),
        TEST(a_tracer_that_disturbs_times_leaves_for_good),
        TEST(a_trace_that_is_in_the_way_is_repeated_without),
        TEST(counters_in_the_way_of_a_trace_leave_for_good),
        TEST(counters_are_judged_again_after_a_trace),
        TEST(the_tracer_leaves_when_counters_are_tried),
        TEST(a_tracer_that_left_does_not_come_back_with_refused_counters),
        TEST(refused_traces_are_told_once),
        TEST(incomplete_traces_say_why),
        TEST(kernels_are_known_by_name_and_shape),
        TEST(times_of_kernels_at_the_same_time_count_once),
        TEST(the_wait_before_the_work_is_not_in_the_trace),
        TEST(launches_of_the_trace_are_counted_by_themselves),
        TEST(a_trace_that_fails_before_it_is_decided_leaves_nothing),
        TEST(work_that_fails_loses_the_counters_until_the_next),
        TEST(a_device_lost_while_it_counts_is_told),
        TEST(a_device_lost_while_it_is_traced_is_told),
        TEST(a_device_lost_while_it_is_judged_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
