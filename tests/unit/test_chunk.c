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

/* The delay is at least twice what the host takes, of what is bound now. */
static void a_delay_covers_what_is_enqueued(void **state)
{
    (void)state;
    for (int iterations = 1; iterations <= 100; iterations *= 10)
        for (int attempt = 0; attempt < CHUNK_ATTEMPTS; ++attempt) {
            struct chunk chunk = chunk_plan(&convolution, iterations, 1000, attempt);
            double host = convolution.enqueue_time * iterations * chunk.samples;
            assert_in_range(chunk.samples, 1, CHUNK_SAMPLES_MAX);
            assert_true(chunk.delay >= fmin(ldexp(2.0, attempt) * host, 50e-3));
            assert_true(chunk.delay >= 2.0 * host);
            assert_true(host <= 1e-3 || chunk.samples == 1);
        }
}

static void each_attempt_asks_for_less(void **state)
{
    (void)state;
    struct chunk first = chunk_plan(&convolution, 1, 1000, 0);
    struct chunk second = chunk_plan(&convolution, 1, 1000, 1);
    assert_int_equal(second.samples, first.samples / 2);
    assert_true(fabs(second.delay / first.delay - 1.0) < 0.01);
    struct chunk last = chunk_plan(&convolution, 100, 1000, CHUNK_ATTEMPTS - 1);
    assert_int_equal(last.samples, 1);
    assert_int_equal(chunk_plan(&convolution, 1, 3, 0).samples, 3);
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
        cmocka_unit_test(a_delay_covers_what_is_enqueued),
        cmocka_unit_test(each_attempt_asks_for_less),
        cmocka_unit_test(slow_work_comes_in_small_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
