/* What is enqueued at once, by numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/gpu/timing.h"

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

static void nothing_known_is_one_iteration_that_is_not_held(void **state)
{
    (void)state;
    const struct pace unknown = {0};
    struct chunk chunk = chunk_plan(&unknown, 1, 100, 0);
    assert_int_equal(chunk.samples, 1);
    assert_true(chunk.limit == 0.0);
}

/* A small LSTM of 6 us that takes the host 20 us, and a call of a library. */
static const struct pace lstm = {.enqueue_time = 20e-6, .iteration_time = 6e-6};
static const struct pace call = {.enqueue_time = 180e-6, .iteration_time = 4e-6};

static void no_chunk_exceeds_its_bounds(void **state)
{
    (void)state;
    const struct pace slow = {.enqueue_time = 5e-6, .iteration_time = 5e-3};
    const struct pace *const paces[] = {&convolution, &lstm, &call, &slow};
    for (size_t p = 0; p < sizeof paces / sizeof *paces; ++p)
        for (int iterations = 1; iterations <= 1000; iterations *= 10)
            for (int left = 1; left <= 1000; left *= 10)
                for (int attempt = 0; attempt < CHUNK_ATTEMPTS; ++attempt) {
                    struct chunk chunk = chunk_plan(paces[p], iterations, left, attempt);
                    double all = (double)iterations * chunk.samples;
                    assert_in_range(chunk.samples, 1, CHUNK_SAMPLES_MAX);
                    assert_true(chunk.samples <= left);
                    assert_true(paces[p]->enqueue_time * all <= 1e-3 || chunk.samples == 1);
                    assert_true(paces[p]->iteration_time * all <= 20e-3 || chunk.samples == 1);
                    assert_true(chunk.limit <= 1.0);
                }
}

/* The host may take four times as long as it did, or stand still for a while: the device is still held. */
static void the_limit_leaves_the_host_time(void **state)
{
    (void)state;
    for (int iterations = 1; iterations <= 100; iterations *= 10) {
        struct chunk chunk = chunk_plan(&call, iterations, 1000, 0);
        double host = call.enqueue_time * iterations * chunk.samples;
        assert_true(chunk.limit >= 4.0 * host && chunk.limit >= 50e-3);
    }
    assert_true(chunk_plan(&call, 1000, 1, 0).limit ==
                0.5); /* more launches than the queue holds */
}

static void a_second_attempt_has_twice_the_time(void **state)
{
    (void)state;
    struct chunk first = chunk_plan(&call, 100, 1000, 0);
    struct chunk second = chunk_plan(&call, 100, 1000, 1);
    assert_true(second.limit == 2.0 * first.limit);
}

/* What blocks the host would block it until the limit, each time. */
static void what_was_given_up_is_held_no_longer_than_the_host_needs(void **state)
{
    (void)state;
    struct pace pace = {.enqueue_time = 10e-3, .iteration_time = 8e-3, .given_up = true};
    assert_true(chunk_plan(&pace, 1, 20, 0).limit < 2.0 * pace.enqueue_time);
    pace.enqueue_time = 10.0;
    assert_true(chunk_plan(&pace, 1, 20, 0).limit <= 0.5);
}

static void what_blocked_in_several_samples_comes_one_by_one(void **state)
{
    (void)state;
    struct pace pace = lstm;
    assert_int_equal(chunk_plan(&pace, 1, 3, 0).samples, 3);
    pace.one_by_one = true;
    assert_int_equal(chunk_plan(&pace, 1, 3, 0).samples, 1);
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
        cmocka_unit_test(nothing_known_is_one_iteration_that_is_not_held),
        cmocka_unit_test(no_chunk_exceeds_its_bounds),
        cmocka_unit_test(the_limit_leaves_the_host_time),
        cmocka_unit_test(a_second_attempt_has_twice_the_time),
        cmocka_unit_test(what_was_given_up_is_held_no_longer_than_the_host_needs),
        cmocka_unit_test(what_blocked_in_several_samples_comes_one_by_one),
        cmocka_unit_test(slow_work_comes_in_small_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
