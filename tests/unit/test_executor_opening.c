/* A rank's worker: opened, lost, replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "executor_bench.h"

/* Three new workers in a row must fail to open the device; one that opens it begins anew. */
static void a_device_is_lost_after_three_workers(void **state)
{
    (void)state;
    static const struct {
        const char *describe, *reason;
    } rows[] = {
        {"[ $n = 1 ] && device u1 || exit 3", "u1 on n1: worker ended with status 3"},
        {"device u$n", "the device is now 'u4'"},
        {"[ $n = 1 ] && device u1 || fail device off-the-bus", "off-the-bus"},
        {"[ $n = 1 ] && device u1 || record x", "about something else"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        bench_begin(&bench, rows[i].describe, "exit 7");
        give_work(&bench, "conv2d batch=3");
        char *text = wait_for(&bench, MESSAGE_DEVICE_LOST);
        assert_says(text, rows[i].reason);
        free(text);
        assert_int_equal(starts(&bench), 4);
        bench_end(&bench);
    }
}

static void two_failures_to_open_are_survived(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench, "case $n in 2|3) exit 3 ;; *) device u1 ;; esac",
                "[ $n = 1 ] && exit 7; record \"$(asked)\"");
    struct record record = measured(&bench, "conv2d batch=3");
    assert_int_equal(record.status, RECORD_MEASURED);
    assert_int_equal(record.attempts, 2); /* of the configuration, not of the device */
    assert_int_equal(starts(&bench), 4);
    record_clear(&record);
    bench_end(&bench);
}

/* Before the sweep the rank waits for it; the steps are the same. */
static void a_worker_is_replaced_before_the_sweep(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_make(&bench);
    write_worker(&bench, last_kind(), "[ $n -lt 3 ] && device u1 || exit 3", ":");
    bench_create(&bench, last_kind(), 0);
    assert_int_equal(executor_open(bench.executor, &error), STATUS_OK);
    assert_int_equal(executor_reopen(bench.executor, &error), STATUS_OK);
    assert_int_equal(starts(&bench), 2);
    assert_int_equal(bench.sent.count, 0);

    assert_int_equal(executor_reopen(bench.executor, &error), STATUS_DEVICE);
    assert_says(error.text, "ended with status 3");
    assert_int_equal(starts(&bench), 5);
    assert_int_equal(bench.sent.count, 0); /* rank 0 hears of it once it begins */
    executor_start(bench.executor);
    char *text = collected_take(&bench.sent, 0, MESSAGE_DEVICE_LOST);
    assert_says(text, "u1 on n1: worker ended with status 3");
    free(text);
    bench_end(&bench);
}

/* What the first worker does when it is asked for its device; the second one has it. */
static void a_worker_lost_at_opening_costs_a_try(void **state)
{
    (void)state;
    static const char *const rows[] = {"kill -KILL $$", "exit 7", "exec sleep 100"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        char describe[200];
        snprintf(describe, sizeof describe, "[ $n = 1 ] && %s; device u1", rows[i]);
        bench_begin(&bench, describe, "record \"$(asked)\"");
        assert_null(executor_lost(bench.executor));
        assert_int_equal(starts(&bench), 2);
        struct record record = measured(&bench, "conv2d batch=3");
        assert_int_equal(record.status, RECORD_MEASURED);
        record_clear(&record);
        bench_end(&bench);
    }
}

static void a_device_that_never_opens_is_lost_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *describe, *reason;
        int starts;
    } rows[] = {
        {"echo 'out of luck' >&2; kill -KILL $$",
         "worker was killed by signal 9 (Killed); it last printed: out of luck", 3},
        {"exec sleep 100", "timed out after 1 s",
         2}, /* within a bound: two hang as long as three */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        struct error error;
        char host[HOST_NAME_MAX + 1], expected[400];
        bench_make(&bench);
        write_worker(&bench, &device_kinds[0], rows[i].describe, ":");
        bench_create(&bench, NULL, 1);
        double start = clock_monotonic();
        assert_int_equal(executor_open(bench.executor, &error), STATUS_OK);
        assert_true(clock_monotonic() - start < 3.5);
        assert_non_null(executor_lost(bench.executor));
        assert_false(device_is_open(executor_device(bench.executor)));
        assert_ptr_equal(executor_kind(bench.executor), &device_kinds[0]);
        assert_int_equal(starts(&bench), rows[i].starts);
        executor_start(bench.executor);
        char *text = collected_take(&bench.sent, 0, MESSAGE_DEVICE_LOST);
        gethostname(host, sizeof host);
        snprintf(expected, sizeof expected, "GPU 1 on %s: ", host);
        assert_says(text, expected);
        assert_says(text, rows[i].reason);
        free(text);
        bench_end(&bench);
    }
}

/* It says itself that there is nothing to open, which is for the user to mend. */
static void an_error_at_opening_is_no_lost_device(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_make(&bench);
    write_worker(&bench, last_kind(), "fail device too-old", ":");
    bench_create(&bench, last_kind(), 0);
    assert_int_equal(executor_open(bench.executor, &error), STATUS_DEVICE);
    assert_string_equal(error.text, "too-old");
    assert_null(executor_lost(bench.executor));
    assert_int_equal(starts(&bench), 1);
    bench_end(&bench);
}

static void a_signal_ends_the_waiting_for_a_worker(void **state)
{
    (void)state;
    static const volatile sig_atomic_t signalled = 1;
    struct bench bench;
    struct error error;
    struct sender sender;
    bench_make(&bench);
    sender = collected_sender(&bench.sent);
    write_worker(&bench, last_kind(), "exec sleep 100", ":");
    struct executor_settings settings = {
        .worker_folder = bench.folder,
        .device = last_kind(),
        .open_timeout = 60,
        .interrupted = &signalled,
    };
    sched_getaffinity(0, sizeof settings.binding.cpus, &settings.binding.cpus);
    bench.executor = executor_create(&settings, &sender, &bench.log);
    double start = clock_monotonic();
    assert_int_equal(executor_open(bench.executor, &error), STATUS_INTERRUPTED);
    assert_true(clock_monotonic() - start < 5);
    bench_end(&bench);
}

static void auto_falls_to_the_next_kind_and_says_why(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    char expected[200];
    bench_make(&bench);
    write_worker(&bench, last_kind(), "device u1", ":");
    bench_create(&bench, NULL, 0);
    assert_int_equal(executor_open(bench.executor, &error), STATUS_OK);
    assert_ptr_equal(executor_kind(bench.executor), last_kind());
    snprintf(expected, sizeof expected, "%s, because no %s can be used: cannot start %s/%s",
             last_kind()->name, device_kinds[0].noun, bench.folder, device_kinds[0].worker);
    assert_int_equal(strncmp(executor_choice(bench.executor), expected, strlen(expected)), 0);
    bench_end(&bench);
}

static void a_kind_that_was_named_is_the_only_one(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_make(&bench);
    write_worker(&bench, last_kind(), "device u1", ":");
    bench_create(&bench, &device_kinds[0], 0);
    assert_int_equal(executor_open(bench.executor, &error), STATUS_DEVICE);
    assert_says(error.text, "was it built");
    assert_int_equal(starts(&bench), 0);
    bench_end(&bench);
}

/* The row that opened it is what decides later on, so the worker must be of that kind. */
static void a_worker_of_another_kind_is_refused(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_make(&bench);
    write_worker(&bench, last_kind(), "kind=abacus; device u1", ":");
    bench_create(&bench, last_kind(), 0);
    assert_int_equal(executor_open(bench.executor, &error), STATUS_DEVICE);
    assert_says(error.text, "describes a device of kind 'abacus'");
    bench_end(&bench);
}

/* Its worker counts two devices: the third rank must not share one, nor take another kind. */
static void a_numbered_device_goes_to_the_rank_of_its_number(void **state)
{
    (void)state;
    static const struct {
        int rank;
        const char *index;
    } rows[] = {{0, "\"index\":0"}, {1, "\"index\":1"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        struct error error;
        char describe[200];
        snprintf(describe, sizeof describe,
                 "case $line in *'%s'*) device u1 ;; *) fail usage wrong ;; esac", rows[i].index);
        bench_make(&bench);
        write_worker(&bench, &device_kinds[0], describe, ":");
        bench_create(&bench, NULL, rows[i].rank);
        assert_int_equal(executor_open(bench.executor, &error), STATUS_OK);
        assert_int_equal(executor_device(bench.executor)->index, rows[i].rank);
        bench_end(&bench);
    }
    struct bench bench;
    struct error error;
    bench_make(&bench);
    write_worker(&bench, &device_kinds[0], "device u1", ":");
    bench_create(&bench, NULL, 2);
    assert_int_equal(executor_open(bench.executor, &error), STATUS_DEVICE);
    assert_says(error.text, "rank 2 of 3 on this node has no GPU of its own: 2 are visible");
    bench_end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_is_lost_after_three_workers),
        cmocka_unit_test(two_failures_to_open_are_survived),
        cmocka_unit_test(a_worker_is_replaced_before_the_sweep),
        cmocka_unit_test(a_worker_lost_at_opening_costs_a_try),
        cmocka_unit_test(a_device_that_never_opens_is_lost_by_name),
        cmocka_unit_test(an_error_at_opening_is_no_lost_device),
        cmocka_unit_test(a_signal_ends_the_waiting_for_a_worker),
        cmocka_unit_test(auto_falls_to_the_next_kind_and_says_why),
        cmocka_unit_test(a_kind_that_was_named_is_the_only_one),
        cmocka_unit_test(a_worker_of_another_kind_is_refused),
        cmocka_unit_test(a_numbered_device_goes_to_the_rank_of_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
