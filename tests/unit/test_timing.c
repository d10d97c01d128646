/* How long work takes, in the stream and in a graph, and its energy, on a scripted GPU
 * (scripted_vendor.h). */
#include "scripted_vendor.h"

#include <math.h>

#include "base/clock.h"
#include "model/workloads/conv2d.h"
#include "worker/gpu/energy.h"
#include "worker/gpu/graph.h"
#include "worker/gpu/search.h"
#include "worker/gpu/timing.h"

static struct gpu *const gpu = NULL; /* the script has the only one */

/* ---- chunks, by numbers ---- */

/* A convolution of 15 us that takes the host 5 us; a small LSTM, a call of a library, and work that
 * takes the device long. */
static const struct pace convolution = {.enqueue_time = 5e-6, .iteration_time = 15e-6};
static const struct pace lstm = {.enqueue_time = 20e-6, .iteration_time = 6e-6};
static const struct pace call = {.enqueue_time = 180e-6, .iteration_time = 4e-6};
static const struct pace slow = {.enqueue_time = 5e-6, .iteration_time = 5e-3};

/* The share that the timer has of a sample follows from the device alone: it once held fewer
 * iterations where the host was slow, and the timer showed, by 6 % in one row. */
static void a_sample_makes_the_timer_negligible(void **state)
{
    static const struct {
        struct pace pace;
        double overhead;
        int iterations;
    } cases[] = {
        {{.enqueue_time = 5e-6, .iteration_time = 15e-6}, 3e-6, 40},
        {{.enqueue_time = 1e-3, .iteration_time = 15e-6}, 3e-6, 40}, /* a busy host */
        {{.enqueue_time = 5e-6, .iteration_time = 2e-3}, 3e-6, 1},
        {{.enqueue_time = 5e-6, .iteration_time = 15e-6}, 0.0, 1},
        {{.enqueue_time = 2e-6, .iteration_time = 1e-12}, 3e-6, 1000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        assert_int_equal(chunk_sample_iterations(&cases[i].pace, cases[i].overhead, 0.005),
                         cases[i].iterations);
}

static void no_chunk_exceeds_its_bounds(void **state)
{
    const struct pace *const paces[] = {&convolution, &lstm, &call, &slow};
    for (size_t p = 0; p < sizeof paces / sizeof *paces; ++p)
        for (int iterations = 1; iterations <= 1000; iterations *= 10)
            for (int left = 1; left <= 1000; left *= 10)
                for (int attempt = 0; attempt < CHUNK_ATTEMPTS; ++attempt) {
                    struct chunk chunk = chunk_plan(paces[p], iterations, left, attempt);
                    double all = (double)iterations * chunk.samples;
                    double host = paces[p]->enqueue_time * all;
                    assert_in_range(chunk.samples, 1, CHUNK_SAMPLES_MAX);
                    assert_true(chunk.samples <= left);
                    assert_true(host <= 1e-3 || chunk.samples == 1);
                    assert_true(paces[p]->iteration_time * all <= 20e-3 || chunk.samples == 1);
                    /* The host may take four times as long as it did, or stand still for a while.
                     * Only with more launches than the queue holds it waits for the limit. */
                    double least = fmax(fmin(4.0 * host, 0.5), 50e-3);
                    assert_true(chunk.limit == least * (attempt ? 2.0 : 1.0));
                }
}

static void a_chunk_goes_by_what_is_known(void **state)
{
    static const struct {
        struct pace pace;
        int left, samples;
    } cases[] = {
        {{0}, 100, 1},
        {{.enqueue_time = 20e-6, .iteration_time = 6e-6}, 3, 3},
        {{.enqueue_time = 20e-6, .iteration_time = 6e-6, .one_by_one = true}, 3, 1},
        {{.enqueue_time = 5e-6, .iteration_time = 5e-3}, 100, 4}, /* a failure discards little */
        {{.enqueue_time = 5e-6, .iteration_time = 1.0}, 100, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        assert_int_equal(chunk_plan(&cases[i].pace, 1, cases[i].left, 0).samples, cases[i].samples);
    assert_true(chunk_plan(&cases[0].pace, 1, 100, 0).limit == 0.0);
    /* What blocks the host would block it until the limit, each time. */
    struct pace given_up = {.enqueue_time = 10e-3, .iteration_time = 8e-3, .given_up = true};
    assert_true(chunk_plan(&given_up, 1, 20, 0).limit < 2.0 * given_up.enqueue_time);
    given_up.enqueue_time = 10.0;
    assert_true(chunk_plan(&given_up, 1, 20, 0).limit <= 0.5);
}

/* ---- work ---- */

/* What an iteration launches, and what happened. */
struct scripted_work {
    struct work base;
    int launches;   /* of an iteration */
    int iterations; /* until now */
    int fails_at;   /* the iteration of that number; 0: none */
    enum status failure;
    int candidate; /* 1: the launches; 0: one kernel that takes twice as long as they do */
};

static enum status launches_iterate(struct gpu *unused, struct work *work, struct error *error)
{
    struct scripted_work *w = (struct scripted_work *)work;
    if (++w->iterations == w->fails_at)
        return error_set(error, w->failure, "it waits for the device");
    if (w->candidate == 0)
        return script_kernel("one", 2.0 * w->launches * script.empty_time, 0.0, error);
    for (int i = 0; i < w->launches; ++i)
        TRY(script_kernel("part", script.empty_time, script.node_time, error));
    return STATUS_OK;
}

/* As many launches with one call: the host enqueues a graph of its own. */
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
    work->launch_count = 0; /* it is the test's own */
}

static const struct work_ops ops = {.iterate = launches_iterate, .release = nothing_release};
static const struct work_ops wide_ops = {.iterate = wide_iterate, .release = nothing_release};
static const struct work_ops reset_ops = {
    .iterate = launches_iterate, .reset = delay_reset, .release = nothing_release};

static struct scripted_work work_of(const struct work_ops *functions, int launches)
{
    return (struct scripted_work){
        .base = {.ops = functions}, .launches = launches, .candidate = 1, .failure = STATUS_FAILED};
}

/* As a row is: two iterations of warm-up, then samples. */
static struct record timed(struct work *work, bool cold, int samples, double *seconds)
{
    struct record record;
    struct error error;
    record_init(&record);
    assert_int_equal(timing_run(gpu, work, cold, 2, seconds, NULL, &error), STATUS_OK);
    assert_int_equal(timing_run(gpu, work, cold, samples, seconds, &record, &error), STATUS_OK);
    return record;
}

static void assert_all_near(const double *seconds, int count, double expected)
{
    for (int i = 0; i < count; ++i)
        assert_near(seconds[i], expected);
}

/* Once it is known how long the host takes to enqueue one, the device is held until all are. A pair
 * of events adds its own time: where it can, a sample holds many iterations. */
static void samples_show_the_device(void **state)
{
    enum { SAMPLES = 300 };
    static const struct {
        double event_time, kernel_time; /* s */
        bool cold;
        const struct work_ops *ops;
        int iterations; /* at least, of a sample; 1: exactly */
    } cases[] = {
        {0.0, 1e-6, false, &ops, 1},
        {0.0, 1e-6, true, &ops, 1},
        {3e-6, 15e-6, false, &ops, 40},
        {3e-6, 15e-6, false, &reset_ops, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct scripted_work work = work_of(cases[i].ops, 1);
        double seconds[SAMPLES];
        script_reset();
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

/* The second of the two candidates is the better one, and takes the host 40 times as long. */
static void the_hold_is_of_what_is_bound(void **state)
{
    enum { SAMPLES = 100, PARTS = 40 };
    double seconds[SAMPLES];
    struct scripted_work work = work_of(&ops, PARTS);
    const struct search search = {
        .work = &work.base, .count = 2, .bind = candidate_bind, .name = candidate_name};
    struct config config = config_default(&conv2d_workload);
    struct record record;
    struct error error;
    int fastest;
    record_init(&record);
    record_set_config(&record, &config);
    assert_int_equal(search_run(&search, &fastest, &record, &error), STATUS_OK);
    assert_int_equal(fastest, 1);
    record_clear(&record);
    record = timed(&work.base, false, SAMPLES, seconds);
    assert_all_near(seconds, SAMPLES, PARTS * script.empty_time);
    assert_int_equal(record.host_paced, 0);
    record_clear(&record);
}

/* What calls of a library are like: they take the host much longer than the device. Its pace is
 * known, as after a search. */
static struct scripted_work call_of_a_library(void)
{
    double seconds[2];
    struct scripted_work work = work_of(&ops, 1);
    struct error error;
    script.event_time = 3e-6;
    script.empty_time = 6e-6;
    script.call_time = 100e-6;
    assert_int_equal(timing_run(gpu, &work.base, false, 2, seconds, NULL, &error), STATUS_OK);
    work.iterations = script.holds = 0;
    return work;
}

/* The device is held no longer than the host needs, which may be more than it needed before; but a
 * host that blocks beyond the limit cannot be waited for. The second attempt is the last one then,
 * and each sample is tried once. */
static void a_slow_host_is_waited_for_within_a_limit(void **state)
{
    enum { SAMPLES = 20 };
    static const struct {
        double slower; /* than it was */
        int pause_every;
        double pause_time; /* s */
        int host_paced, holds;
    } cases[] = {
        {1.0, 0, 0.0, 0, SAMPLES}, {3.0, 0, 0.0, 0, SAMPLES}, {1.0, 50, 0.3, 1, SAMPLES + 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        double seconds[SAMPLES];
        struct record record;
        struct error error;
        script_reset();
        struct scripted_work work = call_of_a_library();
        record_init(&record);
        script.call_time *= cases[i].slower;
        script.pause_every = cases[i].pause_every;
        script.pause_time = cases[i].pause_time;
        double begin = clock_monotonic();
        assert_int_equal(timing_run(gpu, &work.base, false, SAMPLES, seconds, &record, &error),
                         STATUS_OK);
        double took = clock_monotonic() - begin;
        assert_true(record.sample_iterations > 50);
        assert_int_equal(script.holds, cases[i].holds);
        assert_int_equal(work.iterations, cases[i].holds * record.sample_iterations);
        assert_int_equal(record.host_paced, cases[i].host_paced);
        if (!cases[i].host_paced) {
            assert_all_near(seconds, SAMPLES, script.empty_time);
            assert_true(took < 1.15 * work.iterations * (script.call_time + script.empty_time));
        }
        record_clear(&record);
    }
}

/* The host goes on at once, and not after the limit. */
static void a_failure_releases_the_device(void **state)
{
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct scripted_work work = call_of_a_library();
    struct record record;
    struct error error;
    record_init(&record);
    work.fails_at = 10;
    assert_int_equal(timing_run(gpu, &work.base, false, SAMPLES, seconds, &record, &error),
                     STATUS_FAILED);
    double failed = clock_monotonic();
    assert_int_equal(vendor.synchronize(gpu, &error), STATUS_OK);
    assert_true(clock_monotonic() - failed < 2e-3);
    record_clear(&record);
}

/* The host is taken off its processor for longer than the device is held, now and then: such a
 * chunk is taken once more. */
static void a_chunk_that_the_host_lost_is_repeated(void **state)
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

/* Launches that fill the queue sooner than one would think, by their number of nodes: several
 * samples do not get there together, but one by one. The host is blocked once. */
static void samples_that_do_not_fit_together_come_one_by_one(void **state)
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

/* A device that is slower than the host never waits for it. */
static void more_launches_than_the_queue_holds(void **state)
{
    enum { SAMPLES = 5, LAUNCHES = 5000 };
    for (int slower = 0; slower < 2; ++slower) {
        double seconds[SAMPLES];
        struct scripted_work work = work_of(&ops, LAUNCHES);
        script.empty_time = (slower ? 10.0 : 0.1) * script.call_time;
        struct record record = timed(&work.base, false, SAMPLES, seconds);
        assert_int_equal(record.host_paced, !slower);
        record_clear(&record);
    }
}

static void a_clock_that_is_held_down_is_told(void **state)
{
    enum { SAMPLES = 20 };
    script.empty_time = 100e-6;
    for (int held_down = 0; held_down < 2; ++held_down) {
        double seconds[SAMPLES];
        struct scripted_work work = work_of(&ops, 1);
        struct record record = timed(&work.base, false, SAMPLES, seconds);
        assert_near(record.sm_clock_counted / record.sm_clock_free, held_down ? 0.9 : 1.0);
        record_clear(&record);
        script.sm_clock *= 0.9;
    }
}

/* A caller's loop has the pace of the slower one. The host's own is never that of the queue. What
 * is cold, or prepared between iterations, is in no loop. */
static void a_caller_sees_the_slower_one(void **state)
{
    static const struct {
        double device; /* of one iteration, over the host's */
        const struct work_ops *ops;
        bool cold;
    } cases[] = {{0.1, &ops, false}, {5.0, &ops, false},   {1000.0, &ops, false},
                 {0.1, &ops, true},  {1000.0, &ops, true}, {0.1, &reset_ops, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct scripted_work work = work_of(cases[i].ops, 1);
        struct record record;
        struct error error;
        record_init(&record);
        script.empty_time = cases[i].device * script.call_time;
        assert_int_equal(timing_caller(gpu, &work.base, cases[i].cold, &record, &error), STATUS_OK);
        assert_in_range(1e9 * record.host_time, 1e9 * script.call_time, 1.3e9 * script.call_time);
        assert_true(record.host_uncertainty < 0.01);
        assert_int_equal(isnan(record.caller_time), cases[i].cold || cases[i].ops == &reset_ops);
        if (!isnan(record.caller_time)) {
            assert_near(record.caller_time, fmax(script.call_time, script.empty_time));
            assert_true(record.caller_uncertainty < 0.01);
        }
        record_clear(&record);
    }
}

/* ---- graphs ---- */

/* Within a graph gaps are smaller; what is prepared between iterations, or cold, has no such time,
 * nor has what cannot be captured. */
static void a_graph_has_a_time_of_its_own(void **state)
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
        struct error error;
        work.base.pace.iteration_time = 15e-6;
        work.fails_at = cases[i].fails;
        assert_int_equal(graph_time(gpu, &work.base, cases[i].cold, &seconds, &error), STATUS_OK);
        if (cases[i].timed)
            assert_near(seconds, script.node_time);
        else
            assert_true(isnan(seconds));
    }
}

/* Whatever stands between iterations is launched in the stream, and is in no sample. */
static void a_replay_has_the_pace_of_its_graph(void **state)
{
    enum { SAMPLES = 20 };
    const struct work_ops *const kinds[] = {&ops, &reset_ops};
    script.node_time = 7e-6;
    script.empty_time = 15e-6;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        struct scripted_work stream = work_of(kinds[i], 1);
        struct work *work = NULL;
        double seconds[SAMPLES];
        struct error error;
        stream.base.precision = PRECISION_FP16;
        assert_int_equal(replay_create(gpu, &stream.base, &work, &error), STATUS_OK);
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

/* Whichever call fails, nothing is left, and the work in the stream stays the caller's. What cannot
 * be captured is said, also where the failed call looks like a lost device. */
static void a_replay_that_fails_leaves_nothing(void **state)
{
    static const enum status failures[] = {STATUS_FAILED, STATUS_DEVICE};
    struct work *work = NULL;
    struct error error;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; ++i) {
        struct scripted_work refused = work_of(&ops, 1);
        refused.fails_at = 1;
        refused.failure = failures[i];
        assert_int_equal(replay_create(gpu, &refused.base, &work, &error), STATUS_UNSUPPORTED);
        assert_null(work);
        assert_string_equal(error.text,
                            "it cannot be captured in a graph: it waits for the device");
    }
    enum status status = STATUS_FAILED;
    for (int number = 1; status; ++number) {
        struct scripted_work stream = work_of(&ops, 1);
        script.fail_at = script.calls + number;
        status = replay_create(gpu, &stream.base, &work, &error);
        script.fail_at = 0;
        assert_int_equal(work != NULL, status == STATUS_OK);
        assert_true(number < 20);
        if (work)
            work->ops->release(work);
    }
}

/* ---- energy ---- */

/* It is of the work alone; without a counter, with a cold cache or with what stands between
 * iterations there is none. */
static void energy_is_of_the_work_alone(void **state)
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
        struct error error;
        struct resting_power resting = {NAN, NAN};
        record_init(&record);
        record.time_median = script.empty_time;
        script.idle_power = cases[i].idle_power;
        script.busy_power = cases[i].busy_power;
        assert_int_equal(energy_run(gpu, &work.base, cases[i].cold, &resting, &record, &error),
                         STATUS_OK);
        if (cases[i].known) {
            assert_near(record.idle_power, 100.0);
            assert_near(resting.idle, 100.0);
            assert_true(isnan(resting.constant)); /* of roofs alone */
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, script_set_up, script_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sample_makes_the_timer_negligible),
        TEST(no_chunk_exceeds_its_bounds),
        TEST(a_chunk_goes_by_what_is_known),
        TEST(samples_show_the_device),
        TEST(the_hold_is_of_what_is_bound),
        TEST(a_slow_host_is_waited_for_within_a_limit),
        TEST(a_failure_releases_the_device),
        TEST(a_chunk_that_the_host_lost_is_repeated),
        TEST(samples_that_do_not_fit_together_come_one_by_one),
        TEST(more_launches_than_the_queue_holds),
        TEST(a_clock_that_is_held_down_is_told),
        TEST(a_caller_sees_the_slower_one),
        TEST(a_graph_has_a_time_of_its_own),
        TEST(a_replay_has_the_pace_of_its_graph),
        TEST(a_replay_that_fails_leaves_nothing),
        TEST(energy_is_of_the_work_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
