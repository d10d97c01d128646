/* What is enqueued at once, by numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/cuda/gpu/chunk.h"

/* A convolution of 15 us that takes the host 5 us. */
static const struct pace convolution = {.enqueue_time = 5e-6, .iteration_time = 15e-6};

static void a_sample_makes_the_timer_negligible(void **state)
{
    (void)state;
    assert_int_equal(chunk_sample_iterations(&convolution, 3e-6, 0.005), 40);
    const struct pace slow = {.enqueue_time = 5e-6, .iteration_time = 2e-3};
    assert_int_equal(chunk_sample_iterations(&slow, 3e-6, 0.005), 1);
    assert_int_equal(chunk_sample_iterations(&convolution, 0.0, 0.005), 1);
    const struct pace nothing = {.enqueue_time = 2e-6, .iteration_time = 1e-12};
    assert_int_equal(chunk_sample_iterations(&nothing, 3e-6, 0.005), 1000);
}

/* It once held fewer iterations where the host was slow, and the timer showed: 6 % in one row. */
static void a_sample_does_not_depend_on_the_host(void **state)
{
    (void)state;
    const struct pace busy = {.enqueue_time = 1e-3, .iteration_time = 15e-6};
    assert_int_equal(chunk_sample_iterations(&busy, 3e-6, 0.005), 40);
    assert_int_equal(chunk_plan(&busy, 40, 20, 0).samples, 1);
}

static void nothing_known_is_one_iteration_without_delay(void **state)
{
    (void)state;
    const struct pace unknown = {0};
    struct chunk chunk = chunk_plan(&unknown, 1, 100, 0);
    assert_int_equal(chunk.samples, 1);
    assert_true(chunk.delay == 0.0);
}

/* A small LSTM of 6 us that takes the host 20 us. */
static const struct pace lstm = {.enqueue_time = 20e-6, .iteration_time = 6e-6};

/* Whether the device begins a sample before it is enqueued, if the host takes `slower` times as long as it did. */
static bool waits_for_the_host(const struct pace *pace, int iterations, const struct chunk *chunk,
                               double slower)
{
    for (int i = 0; i < chunk->samples; ++i) {
        double enqueued = slower * pace->enqueue_time * iterations * (i + 1);
        double begun = chunk->delay + pace->iteration_time * iterations * i;
        if (begun < enqueued)
            return true;
    }
    return false;
}

/* The host may take half as long again; what is tried anew leaves it more time still. */
static void each_sample_is_enqueued_before_it_begins(void **state)
{
    (void)state;
    const struct pace *const paces[] = {&convolution, &lstm};
    for (int p = 0; p < 2; ++p)
        for (int iterations = 1; iterations <= 100; iterations *= 10)
            for (int attempt = 0; attempt < CHUNK_ATTEMPTS; ++attempt) {
                struct chunk chunk = chunk_plan(paces[p], iterations, 1000, attempt);
                double host = paces[p]->enqueue_time * iterations * chunk.samples;
                assert_in_range(chunk.samples, 1, CHUNK_SAMPLES_MAX);
                assert_false(waits_for_the_host(paces[p], iterations, &chunk, 1.5));
                assert_true(host <= 1e-3 || chunk.samples == 1);
            }
}

/* It once waited for twice the time of all samples: on an H200 that was more than half of a row's timing. */
static void a_device_that_is_slower_than_the_host_waits_for_one_sample(void **state)
{
    (void)state;
    struct chunk chunk = chunk_plan(&convolution, 10, 1000, 0);
    assert_int_equal(chunk.samples, 20);
    assert_true(chunk.delay < 2.0 * convolution.enqueue_time * 10);
}

static void each_attempt_asks_for_less(void **state)
{
    (void)state;
    struct chunk first = chunk_plan(&lstm, 1, 1000, 0);
    struct chunk second = chunk_plan(&lstm, 1, 1000, 1);
    assert_int_equal(second.samples, first.samples / 2);
    assert_true(second.delay / second.samples > 1.9 * first.delay / first.samples);
    struct chunk last = chunk_plan(&lstm, 100, 1000, CHUNK_ATTEMPTS - 1);
    assert_int_equal(last.samples, 1);
    assert_int_equal(chunk_plan(&lstm, 1, 3, 0).samples, 3);
}

/* A failure discards no more than some milliseconds of a slow device's time. */
static void slow_work_comes_in_small_chunks(void **state)
{
    (void)state;
    const struct pace slow = {.enqueue_time = 5e-6, .iteration_time = 5e-3};
    assert_int_equal(chunk_plan(&slow, 1, 100, 0).samples, 4);
    const struct pace slower = {.enqueue_time = 5e-6, .iteration_time = 1.0};
    assert_int_equal(chunk_plan(&slower, 1, 100, 0).samples, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_makes_the_timer_negligible),
        cmocka_unit_test(a_sample_does_not_depend_on_the_host),
        cmocka_unit_test(nothing_known_is_one_iteration_without_delay),
        cmocka_unit_test(each_sample_is_enqueued_before_it_begins),
        cmocka_unit_test(a_device_that_is_slower_than_the_host_waits_for_one_sample),
        cmocka_unit_test(each_attempt_asks_for_less),
        cmocka_unit_test(slow_work_comes_in_small_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
