/* Device times of work, in the stream and in a graph, and its energy, on a scripted GPU
 * (scripted_vendor.h). */
#include "scripted_vendor.h"

#include <math.h>

#include "base/clock.h"
#include "model/workloads/conv2d.h"
#include "worker/gpu/energy.h"
#include "worker/gpu/arena.h"
#include "worker/gpu/graph.h"
#include "worker/gpu/prepare.h"
#include "worker/gpu/search.h"
#include "worker/gpu/timing.h"

static struct gpu *const gpu = NULL; /* the script has a single GPU */

/* ---- work ---- */

struct scripted_work {
    struct work base;
    int launches;   /* launches of an iteration */
    int iterations; /* number of iterations so far */
    int fails_at;   /* number of the iteration that fails; 0: none */
    enum status failure;
    int candidate;  /* 1: the launches; 0: one kernel that takes twice as long */
    double loading; /* s of the host in the first iteration */
};

static enum status launches_iterate(struct gpu *unused, struct work *work, struct error *error)
{
    struct scripted_work *w = (struct scripted_work *)work;
    if (w->iterations == 0 && w->loading > 0)
        clock_sleep(w->loading);
    if (++w->iterations == w->fails_at)
        return error_set(error, w->failure, "it waits for the device");
    if (w->candidate == 0)
        return script_kernel("one", 2.0 * w->launches * script.empty_time, 0.0, error);
    for (int i = 0; i < w->launches; ++i)
        TRY(script_kernel("part", script.empty_time, script.node_time, error));
    return STATUS_OK;
}

/* Enqueues all launches in one call, as a graph. */
static enum status wide_iterate(struct gpu *unused, struct work *work, struct error *error)
{
    const double call_time = script.call_time;
    script.call_time /= ((struct scripted_work *)work)->launches;
    enum status status = launches_iterate(unused, work, error);
    script.call_time = call_time;
    return status;
}

static enum status delay_reset(struct gpu *unused, struct work *work, struct error *error)
{
    return script_kernel("reset", 100e-6, 100e-6, error);
}

static void nothing_release(struct work *work)
{
    work->launch_count = 0; /* the test owns the work */
}

static const struct work_ops ops = {.iterate = launches_iterate, .release = nothing_release};
static const struct work_ops wide_ops = {.iterate = wide_iterate, .release = nothing_release};
static const struct work_ops reset_ops = {
    .iterate = launches_iterate, .reset = delay_reset, .release = nothing_release};

static const struct work_ops alike_ops = {
    .iterate = launches_iterate, .reset = launches_iterate, .release = nothing_release};

static struct scripted_work work_of(const struct work_ops *functions, int launches)
{
    return (struct scripted_work){
        .base = {.ops = functions}, .launches = launches, .candidate = 1, .failure = STATUS_FAILED};
}

/* Times the work as a row is timed: three iterations of warm-up, then samples. */
static struct record timed(struct work *work, bool cold, int samples, double *seconds)
{
    struct record record;
    record_init(&record);
    assert_ok(timing_run(gpu, work, cold, 3, seconds, NULL, &failure));
    assert_ok(timing_run(gpu, work, cold, samples, seconds, &record, &failure));
    return record;
}

static void assert_all_near(const double *seconds, int count, double expected)
{
    for (int i = 0; i < count; ++i)
        assert_near(seconds[i], expected);
}

#define SCRIPT_TEST(name) TEST_WITH(name, script_set_up, script_tear_down)

/* Samples have the device's time: the host enqueues a chunk while the device is blocked. A sample
 * has enough iterations that the timer hardly shows. Their number depends on the device alone: a
 * busy host once made it smaller, and the timer added 6 % to a row. */
SCRIPT_TEST(samples_show_the_device)
{
    enum { SAMPLES = 300 };
    static const struct {
        double call_time, event_time, kernel_time; /* s */
        bool cold;
        const struct work_ops *ops;
        int iterations; /* lower bound for a sample; 1: exact */
    } cases[] = {
        {2e-6, 0.0, 1e-6, false, &ops, 1},         {2e-6, 0.0, 1e-6, true, &ops, 1},
        {2e-6, 3e-6, 15e-6, false, &ops, 40},      {1e-3, 3e-6, 15e-6, false, &ops, 40},
        {2e-6, 3e-6, 15e-6, false, &reset_ops, 1}, {2e-6, 3e-6, 2e-3, false, &ops, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct scripted_work work = work_of(cases[i].ops, 1);
        double seconds[SAMPLES];
        script_reset();
        script.call_time = cases[i].call_time;
        script.event_time = cases[i].event_time;
        script.empty_time = cases[i].kernel_time;
        struct record record = timed(&work.base, cases[i].cold, SAMPLES, seconds);
        double timer = cases[i].iterations == 1 ? script.event_time : 0.0;
        assert_all_near(seconds, SAMPLES, script.empty_time + timer);
        assert_true(record.timer_overhead == script.event_time);
        assert_in_range(record.sample_iterations, cases[i].iterations,
                        cases[i].iterations == 1 ? 1 : 60);
        assert_near(record.sm_clock_counted, script.sm_clock);
        assert_near(record.sm_clock_free, script.sm_clock);
        assert_int_equal(record.host_paced, 0);
        assert_true(isnan(record.profiler_ratio) && isnan(record.energy));
        record_clear(&record);
    }
}

/* A chunk of several samples must fit into the queue, and a failure must discard little: 1 ms of
 * the host, 20 ms of the device. The limit leaves the host four times its usual time. */
SCRIPT_TEST(no_chunk_exceeds_its_bounds)
{
    static const struct {
        double call_time, kernel_time; /* s */
    } paces[] = {{5e-6, 15e-6}, {20e-6, 6e-6}, {180e-6, 4e-6}, {5e-6, 5e-3},
                 {1e-6, 1e-6},  {2e-6, 1e-9},  {5e-6, 1.0}};
    static const int samples[] = {1, 3, 300};
    for (size_t i = 0; i < 6 * sizeof paces / sizeof *paces; ++i) {
        struct scripted_work work = work_of(&ops, 1);
        double seconds[300];
        script_reset();
        script.call_time = paces[i / 6].call_time;
        script.empty_time = paces[i / 6].kernel_time;
        script.event_time = i % 2 ? 3e-6 : 0.0;
        struct record record = timed(&work.base, false, samples[i / 2 % 3], seconds);
        double limit = fmax(fmin(4.0 * script.block.host, 0.5), 50e-3);
        assert_true(script.block.samples >= 1 && script.block.samples <= 256);
        assert_true(script.block.samples == 1 || script.block.host <= 1.05e-3);
        assert_true(script.block.samples == 1 || script.block.device <= 21e-3);
        assert_true(script.block.limit > 0.9 * limit && script.block.limit <= 1.0);
        assert_true(record.sample_iterations <= 1000);
        record_clear(&record);
    }
}

/* The overhead of a pair of events, and the free clock, are measured once. The clock is read until
 * it no longer rises. */
SCRIPT_TEST(the_timer_is_calibrated_once)
{
    double seconds[10];
    script.uncalibrated = true;
    script.event_time = 3e-6;
    script.falls_by = -0.3;
    script.falls_in = 0.01;
    for (int i = 0; i < 2; ++i) {
        struct scripted_work work = work_of(&ops, 1);
        double begin = clock_monotonic();
        struct record record = timed(&work.base, false, 10, seconds);
        assert_int_equal(clock_monotonic() - begin > 0.05, i == 0);
        assert_near(record.timer_overhead, script.event_time);
        assert_near(record.sm_clock_free, script.sm_clock);
        record_clear(&record);
    }
}

static enum status candidate_bind(struct gpu *unused, struct work *work, int candidate,
                                  struct error *error)
{
    ((struct scripted_work *)work)->candidate = candidate;
    return STATUS_OK;
}

static const char *candidate_name(const struct work *work, int candidate)
{
    return candidate == 0 ? "one" : "parts";
}

/* The second candidate is the faster one, and takes the host many times as long. The limit of the
 * blocking kernel must follow the second candidate's pace. If its launches fill the queue, the host
 * gets a head start in the search, too. */
SCRIPT_TEST(the_limit_follows_the_bound_algorithm)
{
    enum { SAMPLES = 100 };
    static const int parts[] = {40, 5000};
    static const double device[] = {0.5, 0.9}; /* time of a launch, relative to the host's */
    for (int i = 0; i < 2; ++i) {
        double seconds[SAMPLES];
        struct scripted_work work = work_of(&ops, parts[i]);
        const struct search search = {
            .work = &work.base, .count = 2, .bind = candidate_bind, .name = candidate_name};
        struct config config = config_default(&conv2d_workload);
        struct record record;
        int fastest;
        script.empty_time = device[i] * script.call_time;
        record_init(&record);
        record_set_config(&record, &config);
        assert_ok(search_run(&search, &fastest, &record, &failure));
        assert_int_equal(fastest, 1);
        assert_near(record.search_time, parts[i] * script.empty_time);
        record_clear(&record);
        record = timed(&work.base, false, SAMPLES, seconds);
        assert_all_near(seconds, SAMPLES, parts[i] * script.empty_time);
        assert_int_equal(record.host_paced, 0);
        record_clear(&record);
    }
}

/* Returns work like a library's call, which takes the host much longer than the device. The pace is
 * known, as after a search. */
static struct scripted_work call_of_a_library(void)
{
    double seconds[3];
    struct scripted_work work = work_of(&ops, 1);
    script.event_time = 3e-6;
    script.empty_time = 6e-6;
    script.call_time = 100e-6;
    assert_ok(timing_run(gpu, &work.base, false, 3, seconds, NULL, &failure));
    work.iterations = script.blocks = 0;
    return work;
}

/* A host slower than before still finishes within the limit. For a host that pauses longer than the
 * limit, after the second attempt each sample is tried once, with a short limit. */
SCRIPT_TEST(a_slow_host_is_waited_for_within_a_limit)
{
    enum { SAMPLES = 20 };
    static const struct {
        double slower; /* factor of the host's times */
        int pause_every;
        double pause_time; /* s */
        int host_paced, blocks;
    } cases[] = {
        {1.0, 0, 0.0, 0, SAMPLES}, {3.0, 0, 0.0, 0, SAMPLES}, {1.0, 50, 0.3, 1, SAMPLES + 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        double seconds[SAMPLES];
        struct record record;
        script_reset();
        struct scripted_work work = call_of_a_library();
        record_init(&record);
        script.call_time *= cases[i].slower;
        script.pause_every = cases[i].pause_every;
        script.pause_time = cases[i].pause_time;
        double begin = clock_monotonic();
        assert_ok(timing_run(gpu, &work.base, false, SAMPLES, seconds, &record, &failure));
        double took = clock_monotonic() - begin;
        assert_true(record.sample_iterations > 50);
        assert_int_equal(script.blocks, cases[i].blocks);
        assert_int_equal(work.iterations, cases[i].blocks * record.sample_iterations);
        assert_int_equal(record.host_paced, cases[i].host_paced);
        if (cases[i].host_paced) {
            double expected = work.base.pace.enqueue_time * (double)record.sample_iterations;
            assert_true(script.block.limit < 2.0 * expected);
        } else {
            assert_all_near(seconds, SAMPLES, script.empty_time);
            assert_true(took < 1.15 * work.iterations * (script.call_time + script.empty_time));
        }
        record_clear(&record);
    }
}

/* The host continues at once, not after the limit. */
SCRIPT_TEST(a_failure_unblocks_the_device)
{
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct scripted_work work = call_of_a_library();
    struct record record;
    record_init(&record);
    work.fails_at = 10;
    assert_int_equal(timing_run(gpu, &work.base, false, SAMPLES, seconds, &record, &failure),
                     STATUS_FAILED);
    double failed = clock_monotonic();
    assert_ok(vendor_synchronize(gpu, &failure));
    assert_true(clock_monotonic() - failed < 2e-3);
    record_clear(&record);
}

/* If the host pauses for longer than the limit, the chunk is measured again. */
SCRIPT_TEST(a_chunk_that_the_host_lost_is_repeated)
{
    enum { SAMPLES = 500 };
    static double seconds[SAMPLES];
    struct scripted_work work = work_of(&ops, 1);
    script.pause_every = 997;
    script.pause_time = 80e-3;
    struct record record = timed(&work.base, false, SAMPLES, seconds);
    assert_all_near(seconds, SAMPLES, script.empty_time);
    assert_int_equal(record.host_paced, 0);
    record_clear(&record);
}

/* Launches of many nodes fill the queue sooner than their number suggests. Several samples do not
 * fit together, but one does. The host is blocked once. */
SCRIPT_TEST(samples_that_do_not_fit_together_come_one_by_one)
{
    enum { SAMPLES = 30, NODES = 200 };
    double seconds[SAMPLES];
    struct scripted_work work = work_of(&wide_ops, NODES);
    script.event_time = 3e-6;
    script.call_time = 5e-6;
    struct record record = timed(&work.base, false, SAMPLES, seconds);
    assert_in_range(record.sample_iterations, 3, 4);
    assert_int_equal(record.host_paced, 0);
    assert_true(work.base.pace.one_by_one && !work.base.pace.given_up);
    assert_true(work.iterations < (SAMPLES + 20) * record.sample_iterations + 10);
    record_clear(&record);
}

/* A sample is larger than the queue. A device much faster than the host waits for launches. If both
 * are about as fast, the host gets a head start. No blocking kernel reaches a long limit, even if
 * the host loaded code for 0.2 s in the first iteration. */
SCRIPT_TEST(more_launches_than_the_queue_holds)
{
    enum { SAMPLES = 5, LAUNCHES = 5000 };
    static const double slower[] = {0.1, 0.95, 10.0, 0.9}, call_times[] = {2e-6, 2e-6, 2e-6, 8e-6};
    for (int i = 0; i < 4; ++i) {
        double seconds[SAMPLES], begin = clock_monotonic();
        struct scripted_work work = work_of(&ops, LAUNCHES);
        work.loading = 0.2;
        script.call_time = call_times[i];
        script.empty_time = slower[i] * script.call_time;
        struct record record = timed(&work.base, false, SAMPLES, seconds);
        const double iteration = LAUNCHES * fmax(script.empty_time, script.call_time), some = 0.03;
        assert_int_equal(record.host_paced, slower[i] < 0.5);
        if (slower[i] > 0.5)
            assert_all_near(seconds + 1, SAMPLES - 1, LAUNCHES * script.empty_time);
        assert_true(clock_monotonic() - begin < work.iterations * iteration + work.loading + some);
        record_clear(&record);
    }
}

/* The launches of a preparation need no place in the queue. */
SCRIPT_TEST(a_preparation_may_fill_the_queue)
{
    enum { SAMPLES = 5, LAUNCHES = 700 };
    double seconds[SAMPLES];
    struct scripted_work work = work_of(&alike_ops, LAUNCHES);
    struct record record = timed(&work.base, false, SAMPLES, seconds);
    assert_all_near(seconds, SAMPLES, LAUNCHES * script.empty_time);
    assert_int_equal(record.host_paced, 0);
    record_clear(&record);
}

SCRIPT_TEST(a_throttled_clock_is_recorded)
{
    enum { SAMPLES = 20 };
    script.empty_time = 100e-6;
    for (int throttled = 0; throttled < 2; ++throttled) {
        double seconds[SAMPLES];
        struct scripted_work work = work_of(&ops, 1);
        struct record record = timed(&work.base, false, SAMPLES, seconds);
        assert_near(record.sm_clock_counted / record.sm_clock_free, throttled ? 0.9 : 1.0);
        record_clear(&record);
        script.sm_clock *= 0.9;
    }
}

/* A caller's loop has the pace of the slower side. The host's time never includes waits for a full
 * queue. Cold rows, and rows with a preparation between iterations, have no caller_time. */
SCRIPT_TEST(a_caller_sees_the_slower_side)
{
    static const struct {
        double device; /* iteration's time / the host's time */
        const struct work_ops *ops;
        bool cold;
    } cases[] = {{0.1, &ops, false}, {5.0, &ops, false},   {1000.0, &ops, false},
                 {0.1, &ops, true},  {1000.0, &ops, true}, {0.1, &reset_ops, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct scripted_work work = work_of(cases[i].ops, 1);
        struct record record;
        record_init(&record);
        script.empty_time = cases[i].device * script.call_time;
        assert_ok(timing_caller(gpu, &work.base, cases[i].cold, &record, &failure));
        const int unknown = work.iterations; /* with an unknown pace */
        work.base.pace =
            (struct pace){.enqueue_time = script.call_time, .iteration_time = script.empty_time};
        assert_ok(timing_caller(gpu, &work.base, cases[i].cold, &record, &failure));
        assert_true(work.iterations < 1.9 * unknown || unknown <= 15);
        assert_in_range(1e9 * record.host_time, 1e9 * script.call_time, 1.3e9 * script.call_time);
        assert_int_equal(isnan(record.caller_time), cases[i].cold || cases[i].ops == &reset_ops);
        if (!isnan(record.caller_time)) {
            assert_near(record.caller_time, fmax(script.call_time, script.empty_time));
            assert_true(record.caller_uncertainty < 0.01);
        }
        record_clear(&record);
    }
}

/* ---- graphs ---- */

/* Gaps in a graph are smaller. Cold rows, rows with a preparation between iterations, and work that
 * cannot be captured have no graph_time. */
SCRIPT_TEST(a_graph_has_a_time_of_its_own)
{
    static const struct {
        const struct work_ops *ops;
        bool cold, fails, timed;
    } cases[] = {{&ops, false, false, true},
                 {&ops, true, false, false},
                 {&reset_ops, false, false, false},
                 {&ops, false, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct scripted_work work = work_of(cases[i].ops, 1);
        double seconds;
        work.base.pace.iteration_time = 15e-6;
        work.fails_at = cases[i].fails;
        assert_ok(timing_graph(gpu, &work.base, cases[i].cold, &seconds, &failure));
        if (cases[i].timed)
            assert_near(seconds, script.node_time);
        else
            assert_true(isnan(seconds));
    }
}

/* The preparation between iterations is launched in the stream, and is in no sample. */
SCRIPT_TEST(a_replay_has_the_pace_of_its_graph)
{
    enum { SAMPLES = 20 };
    const struct work_ops *const kinds[] = {&ops, &reset_ops};
    script.node_time = 7e-6;
    script.empty_time = 15e-6;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        struct scripted_work stream = work_of(kinds[i], 1);
        struct work *work = NULL;
        double seconds[SAMPLES];
        stream.base.precision = PRECISION_FP16;
        assert_ok(replay_create(gpu, &stream.base, &work, &failure));
        assert_ptr_equal(work->stream, &stream.base);
        assert_int_equal(work->precision, PRECISION_FP16);
        assert_int_equal(work->ops->reset != NULL, kinds[i]->reset != NULL);
        assert_true(!work->ops->element && !work->ops->reject);
        struct record record = timed(work, false, SAMPLES, seconds);
        assert_all_near(seconds, SAMPLES,
                        script.node_time + (kinds[i]->reset ? record.timer_overhead : 0.0));
        record_clear(&record);
        work->ops->release(work);
    }
}

static void *held; /* the result of work with `held_ops` */

static const void *held_result(const struct work *work, enum tensor tensor)
{
    return held;
}

static int64_t held_element(const struct work *work, enum tensor tensor, int64_t offset)
{
    return 9 - offset;
}

/* The graph writes where the launches in the stream would. */
SCRIPT_TEST(a_replay_is_read_from_its_stream)
{
    const struct work_ops held_ops = {.iterate = launches_iterate,
                                      .result = held_result,
                                      .element = held_element,
                                      .release = nothing_release};
    const int64_t offsets[] = {2, 7};
    double values[2];
    struct scripted_work stream = work_of(&held_ops, 1);
    struct work *work = NULL;
    script.arena = arena_open(gpu);
    assert_ok(arena_allocate(script.arena, 64, "a result", &held, &failure));
    assert_ok(replay_create(gpu, &stream.base, &work, &failure));
    assert_ok(work_read(gpu, work, TENSOR_OUTPUT, offsets, 2, values, &failure));
    assert_true(values[0] == 7 && values[1] == 2);
    work->ops->release(work);
    arena_free(script.arena, held);
    arena_close(script.arena);
}

/* Whichever call fails, no graph is left, and the caller still owns the stream's work. A failed
 * capture is STATUS_UNSUPPORTED, even if the failed call looks like a lost device. */
SCRIPT_TEST(a_replay_that_fails_leaves_nothing)
{
    static const enum status failures[] = {STATUS_FAILED, STATUS_DEVICE};
    struct work *work = NULL;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; ++i) {
        struct scripted_work refused = work_of(&ops, 1);
        refused.fails_at = 1;
        refused.failure = failures[i];
        assert_fails_with(replay_create(gpu, &refused.base, &work, &failure), STATUS_UNSUPPORTED,
                          "it cannot be captured in a graph: it waits for the device");
        assert_null(work);
    }
    enum status status = STATUS_FAILED;
    for (int number = 1; status; ++number) {
        struct scripted_work stream = work_of(&ops, 1);
        script.fail_at = script.calls + number;
        status = replay_create(gpu, &stream.base, &work, &failure);
        script.fail_at = 0;
        assert_int_equal(work != NULL, status == STATUS_OK);
        assert_true(number < 20);
        if (work)
            work->ops->release(work);
    }
}

/* ---- energy ---- */

/* Rows have no energy without a counter, with a cold cache, or with a preparation between
 * iterations. */
SCRIPT_TEST(energy_is_of_the_work_alone)
{
    static const struct {
        double idle_power, busy_power; /* W */
        const struct work_ops *ops;
        bool cold, known;
    } cases[] = {{100.0, 600.0, &ops, false, true},
                 {0.0, 0.0, &ops, false, false},
                 {100.0, 100.0, &ops, true, false},
                 {100.0, 100.0, &reset_ops, false, false}};
    script.empty_time = script.node_time = 20e-6;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct scripted_work work = work_of(cases[i].ops, 1);
        struct record record;
        struct resting_power resting = {NAN, NAN};
        record_init(&record);
        record.time_median = script.empty_time;
        script.idle_power = cases[i].idle_power;
        script.busy_power = cases[i].busy_power;
        assert_ok(energy_run(gpu, &work.base, cases[i].cold, &resting, &record, &failure));
        if (cases[i].known) {
            assert_near(record.idle_power, 100.0);
            assert_near(resting.idle, 100.0);
            assert_true(isnan(resting.constant)); /* only roofs need this power */
            assert_near(record.power, 600.0);
            assert_near(record.energy_time, 20e-6);
            assert_near(record.energy, 600.0 * 20e-6);
            assert_near(record.energy_clock, script.sm_clock);
        } else {
            assert_true(isnan(record.energy) && isnan(record.power) && isnan(record.idle_power));
        }
        record_clear(&record);
    }
}
