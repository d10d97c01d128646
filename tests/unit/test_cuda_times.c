/* The CUDA worker's rows: how they are timed, on a scripted H200 (scripted_cuda.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "scripted_bench.h"
#include "timed_work.h"
#include "worker/cuda/gpu/check.h"
#include "worker/gpu/energy.h"
#include "worker/gpu/timing.h"
#include "worker/gpu/search.h"

/* Once it is known how long the host takes to enqueue one, the device is held until all are. */
static void iterations_run_at_the_device_s_pace(void **state)
{
    (void)state;
    enum { ITERATIONS = 300 };
    double seconds[ITERATIONS];
    struct record record;
    struct error error;
    record_init(&record);
    for (int cold = 0; cold < 2; ++cold) {
        struct work work = {.ops = &empty_ops};
        assert_int_equal(timing_run(&bench.gpu, &work, cold, 2, seconds, NULL, &error), STATUS_OK);
        assert_int_equal(timing_run(&bench.gpu, &work, cold, ITERATIONS, seconds, &record, &error),
                         STATUS_OK);
        assert_all_near(seconds, ITERATIONS, script.empty_time);
        assert_near(record.sm_clock_counted, script.sm_clock);
        assert_near(record.sm_clock_free, script.sm_clock);
        assert_int_equal(record.host_paced, 0);
        assert_int_equal(record.throttled, 0);
        assert_true(isnan(record.profiler_ratio) && isnan(record.energy));
    }
    record_clear(&record);
}

/* A pair of events adds its own time. So there is one around many iterations. */
static void hot_samples_hold_many_iterations(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct work work = {.ops = &empty_ops};
    script.event_time = 3e-6;
    script.empty_time = 15e-6;
    struct record record = timed(&work, SAMPLES, seconds);
    assert_near(record.timer_overhead, script.event_time);
    assert_in_range(record.sample_iterations, 40, 60);
    assert_all_near(seconds, SAMPLES, script.empty_time);
    record_clear(&record);
}

/* What stands between iterations must not be in a sample: then each is timed by itself, and the
 * timer's own time is in it, and told. */
static void prepared_iterations_are_timed_one_by_one(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    static const struct work_ops ops = {.iterate = empty_iterate, .reset = nothing_reset};
    double seconds[SAMPLES];
    struct work work = {.ops = &ops};
    script.event_time = 3e-6;
    script.empty_time = 15e-6;
    struct record record = timed(&work, SAMPLES, seconds);
    assert_int_equal(record.sample_iterations, 1);
    assert_near(record.timer_overhead, script.event_time);
    assert_all_near(seconds, SAMPLES, script.empty_time + script.event_time);
    record_clear(&record);
}

/* The second of the two candidates is the better one, and takes the host 40 times as long. */
enum { PARTS = 40 };
struct choice_work {
    struct work base;
    int candidate;
};

static enum status choice_bind(struct gpu *gpu, struct work *work, int candidate,
                               struct error *error)
{
    (void)gpu, (void)error;
    ((struct choice_work *)work)->candidate = candidate;
    return STATUS_OK;
}

static const char *choice_name(const struct work *work, int candidate)
{
    (void)work;
    return candidate == 0 ? "one" : "parts";
}

static enum status choice_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    if (((struct choice_work *)work)->candidate == 0)
        return CUDA(kernel_delay(2.0 * PARTS * script.empty_time, gpu->stream));
    for (int i = 0; i < PARTS; ++i)
        TRY(CUDA(kernel_empty(gpu->stream)));
    return STATUS_OK;
}

static void the_hold_is_of_what_is_bound(void **state)
{
    (void)state;
    enum { SAMPLES = 100 };
    static const struct work_ops ops = {.iterate = choice_iterate};
    double seconds[SAMPLES];
    struct choice_work work = {.base.ops = &ops};
    const struct search search = {.gpu = &bench.gpu,
                                  .work = &work.base,
                                  .count = 2,
                                  .bind = choice_bind,
                                  .name = choice_name};
    struct record record;
    struct error error;
    int fastest;
    record_init(&record);
    assert_int_equal(search_run(&search, &fastest, &record, &error), STATUS_OK);
    assert_int_equal(fastest, 1);
    record = timed(&work.base, SAMPLES, seconds);
    assert_all_near(seconds, SAMPLES, PARTS * script.empty_time);
    assert_int_equal(record.host_paced, 0);
    record_clear(&record);
}

/* What calls of a library are like: they take the host much longer than the device. */
struct counted_work {
    struct work base;
    int iterations; /* until now */
    int fails_at;   /* the iteration of that number; 0: none */
};

static enum status counted_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    struct counted_work *counted = (struct counted_work *)work;
    if (++counted->iterations == counted->fails_at)
        return error_set(error, STATUS_FAILED, "it fails");
    return CUDA(kernel_empty(gpu->stream));
}

static const struct work_ops counted_ops = {.iterate = counted_iterate};

/* Its pace is known, as after a search. */
static struct counted_work call_of_a_library(void)
{
    double seconds[2];
    struct counted_work work = {.base.ops = &counted_ops};
    struct error error;
    script.event_time = 3e-6;
    script.empty_time = 6e-6;
    script.call_time = 100e-6;
    assert_int_equal(timing_run(&bench.gpu, &work.base, false, 2, seconds, NULL, &error),
                     STATUS_OK);
    work.iterations = script.holds = 0;
    return work;
}

static void a_slower_host_needs_no_second_attempt(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct counted_work work = call_of_a_library();
    struct record record;
    struct error error;
    record_init(&record);
    script.call_time *= 3.0;
    assert_int_equal(timing_run(&bench.gpu, &work.base, false, SAMPLES, seconds, &record, &error),
                     STATUS_OK);
    assert_near(record.timer_overhead, script.event_time);
    assert_true(record.sample_iterations > 50);
    assert_int_equal(work.iterations, SAMPLES * record.sample_iterations);
    assert_int_equal(script.holds, SAMPLES);
    assert_int_equal(record.host_paced, 0);
    assert_near(record.sm_clock_counted, script.sm_clock);
    assert_all_near(seconds, SAMPLES, script.empty_time);
    record_clear(&record);
}

/* It does not wait for a time that was guessed. */
static void the_device_is_held_no_longer_than_the_host_needs(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct counted_work work = call_of_a_library();
    struct record record;
    struct error error;
    record_init(&record);
    double begin = clock_monotonic();
    assert_int_equal(timing_run(&bench.gpu, &work.base, false, SAMPLES, seconds, &record, &error),
                     STATUS_OK);
    double iterations = (double)SAMPLES * (double)record.sample_iterations;
    assert_true(clock_monotonic() - begin <
                1.15 * iterations * (script.call_time + script.empty_time));
    record_clear(&record);
}

/* The host goes on at once, and not after the limit. */
static void a_failure_releases_the_device(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct counted_work work = call_of_a_library();
    struct record record;
    struct error error;
    record_init(&record);
    work.fails_at = 10;
    assert_int_equal(timing_run(&bench.gpu, &work.base, false, SAMPLES, seconds, &record, &error),
                     STATUS_FAILED);
    double failed = clock_monotonic();
    assert_int_equal(cudaStreamSynchronize(bench.gpu.stream), cudaSuccess);
    assert_true(clock_monotonic() - failed < 2e-3);
    record_clear(&record);
}

/* The host is taken off its processor for longer than the device is held, now and then: such a chunk is
 * taken once more. */
static void a_chunk_that_the_host_lost_is_repeated(void **state)
{
    (void)state;
    enum { SAMPLES = 500 };
    static double seconds[SAMPLES];
    struct work work = {.ops = &empty_ops};
    script.pause_every = 997;
    script.pause_time = 80e-3;
    struct record record = timed(&work, SAMPLES, seconds);
    assert_all_near(seconds, SAMPLES, script.empty_time);
    assert_int_equal(record.host_paced, 0);
    record_clear(&record);
}

/* A host that blocks beyond the limit. The second attempt is the last one, and then each sample is tried
 * once. */
static void what_cannot_be_had_is_flagged(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct counted_work work = call_of_a_library();
    struct record record;
    struct error error;
    record_init(&record);
    script.pause_every = 50;
    script.pause_time = 0.3;
    assert_int_equal(timing_run(&bench.gpu, &work.base, false, SAMPLES, seconds, &record, &error),
                     STATUS_OK);
    assert_int_equal(record.host_paced, 1);
    assert_int_equal(script.holds, SAMPLES + 1);
    assert_int_equal(work.iterations, (SAMPLES + 1) * record.sample_iterations);
    record_clear(&record);
}

/* Launches that fill the queue sooner than one would think, by their number of nodes: several samples do
 * not get there together, but one by one. The host is blocked once. */
static enum status wide_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    enum { NODES = 200 };
    (void)error;
    struct counted_work *counted = (struct counted_work *)work;
    double call_time = script.call_time;
    ++counted->iterations;
    script.call_time /= NODES;
    for (int i = 0; i < NODES; ++i)
        TRY(CUDA(kernel_empty(gpu->stream)));
    script.call_time = call_time;
    return STATUS_OK;
}

static void samples_that_do_not_fit_together_come_one_by_one(void **state)
{
    (void)state;
    enum { SAMPLES = 30 };
    static const struct work_ops ops = {.iterate = wide_iterate};
    double seconds[SAMPLES];
    struct counted_work work = {.base.ops = &ops};
    script.event_time = 3e-6;
    script.call_time = 5e-6;
    struct record record = timed(&work.base, SAMPLES, seconds);
    assert_in_range(record.sample_iterations, 3, 4);
    assert_int_equal(record.host_paced, 0);
    assert_true(work.base.pace.one_by_one && !work.base.pace.given_up);
    assert_true(work.iterations < (SAMPLES + 20) * record.sample_iterations + 10);
    record_clear(&record);
}

/* More launches than the queue holds: a device that is slower than the host never waits for it. */
static enum status many_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    enum { LAUNCHES = 5000 };
    (void)work;
    for (int i = 0; i < LAUNCHES; ++i)
        TRY(CUDA(kernel_empty(gpu->stream)));
    return STATUS_OK;
}

static void more_launches_than_the_queue_holds(void **state)
{
    (void)state;
    enum { SAMPLES = 5 };
    static const struct work_ops ops = {.iterate = many_iterate};
    for (int slow = 0; slow < 2; ++slow) {
        double seconds[SAMPLES];
        struct work work = {.ops = &ops};
        script.empty_time = (slow ? 10.0 : 0.1) * script.call_time;
        struct record record = timed(&work, SAMPLES, seconds);
        assert_int_equal(record.host_paced, !slow);
        record_clear(&record);
    }
}

static void a_clock_that_is_held_down_is_told(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct work work = {.ops = &empty_ops};
    script.empty_time = 100e-6;
    struct record record = timed(&work, SAMPLES, seconds);
    assert_int_equal(record.throttled, 0);
    record_clear(&record);
    script.sm_clock *= 0.9;
    struct work slower = {.ops = &empty_ops};
    record = timed(&slower, SAMPLES, seconds);
    assert_int_equal(record.throttled, 1);
    assert_near(record.sm_clock_counted / record.sm_clock_free, 0.9);
    record_clear(&record);
}

/* ---- energy ---- */

static void energy_is_of_the_work_alone(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct work work = {.ops = &empty_ops};
    struct error error;
    double idle_power = NAN;
    script.idle_power = 100.0;
    script.busy_power = 600.0;
    script.empty_time = script.node_time = 20e-6;
    struct record record = timed(&work, SAMPLES, seconds);
    record.time_median = seconds[0];
    assert_int_equal(energy_run(&bench.gpu, &work, false, &idle_power, &record, &error), STATUS_OK);
    assert_near(record.idle_power, 100.0);
    assert_near(record.power, 600.0);
    assert_near(record.energy_time, 20e-6);
    assert_near(record.energy, 600.0 * 20e-6);
    assert_near(record.energy_clock, script.sm_clock);
    record_clear(&record);
}

static void without_a_counter_there_is_no_energy(void **state)
{
    (void)state;
    static const struct work_ops prepared = {.iterate = empty_iterate, .reset = nothing_reset};
    struct work work = {.ops = &empty_ops}, other = {.ops = &prepared};
    struct record record;
    struct error error;
    double idle_power = NAN;
    record_init(&record);
    assert_int_equal(energy_run(&bench.gpu, &work, false, &idle_power, &record, &error), STATUS_OK);
    script.idle_power = script.busy_power = 100.0;
    assert_int_equal(energy_run(&bench.gpu, &work, true, &idle_power, &record, &error), STATUS_OK);
    assert_int_equal(energy_run(&bench.gpu, &other, false, &idle_power, &record, &error),
                     STATUS_OK);
    assert_true(isnan(record.energy) && isnan(record.power) && isnan(record.idle_power));
    record_clear(&record);
}

/* Each iteration finds an idle device: it is never the queue that the host waits for. */
static void a_caller_s_pace(void **state)
{
    (void)state;
    static const struct work_ops ops = {.iterate = empty_iterate};
    struct work work = {.ops = &ops};
    double seconds;
    struct error error;
    script.empty_time = 1000.0 * script.call_time;
    assert_int_equal(timing_host_pace(&bench.gpu, &work, &seconds, &error), STATUS_OK);
    assert_in_range(1e9 * seconds, 1e9 * script.call_time, 1.3e9 * script.call_time);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(iterations_run_at_the_device_s_pace),
        TEST(hot_samples_hold_many_iterations),
        TEST(prepared_iterations_are_timed_one_by_one),
        TEST(the_hold_is_of_what_is_bound),
        TEST(a_slower_host_needs_no_second_attempt),
        TEST(the_device_is_held_no_longer_than_the_host_needs),
        TEST(a_failure_releases_the_device),
        TEST(samples_that_do_not_fit_together_come_one_by_one),
        TEST(a_chunk_that_the_host_lost_is_repeated),
        TEST(what_cannot_be_had_is_flagged),
        TEST(more_launches_than_the_queue_holds),
        TEST(a_clock_that_is_held_down_is_told),
        TEST(energy_is_of_the_work_alone),
        TEST(without_a_counter_there_is_no_energy),
        TEST(a_caller_s_pace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
