/* A rank's half of a sweep: rows that are measured, and rows that wait for their counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "executor_bench.h"

static void a_record_is_passed_on_as_it_came(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench, "device u1", "record \"$(asked)\"");
    assert_false(executor_works(bench.executor));
    give_work(&bench, "conv2d batch=3");
    assert_true(executor_works(bench.executor));
    char *text = wait_for(&bench, MESSAGE_RECORD);
    assert_false(executor_works(bench.executor));
    assert_says(text, "\"mood\":7");
    assert_says(text, "\"attempts\":1");
    assert_says(text, "\"device_key\":\"session/0\"");
    assert_says(text, "batch=3 ");
    free(text);
    assert_int_equal(starts(&bench), 1);
    bench_end(&bench);
}

/* What the first worker does with a configuration, and what the second one's record tells. */
static void a_bad_worker_is_replaced(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "exit 7",
        "kill -SEGV $$",
        "exec sleep 100", /* until the time is up */
        "record 'conv2d batch=9'",
        "device u1",
        "echo nonsense",
        "fail device gone",
        "echo '{\"reply\":\"record\",\"record\":{}}'",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        char measure[200];
        snprintf(measure, sizeof measure, "if [ $n = 1 ]; then %s; else record \"$(asked)\"; fi",
                 rows[i]);
        bench_begin(&bench, "device u1", measure);
        struct record record = measured(&bench, "conv2d batch=3");
        assert_int_equal(record.status, RECORD_MEASURED);
        assert_int_equal(record.attempts, 2);
        assert_int_equal(starts(&bench), 2);
        record_clear(&record);
        bench_end(&bench);
    }
}

static void after_the_retries_the_row_has_failed(void **state)
{
    (void)state;
    static const struct {
        const char *measure, *reason;
    } rows[] = {
        {"echo 'out of luck' >&2; exit 7",
         "worker ended with status 7; it last printed: out of luck"},
        {"exec sleep 100", "timed out after 1 s"},
        {"record 'conv2d batch=9'", "the worker's answer is about something else"},
        {"echo nonsense", "not a JSON object"},
        {"echo '{\"reply\":\"record\",\"record\":{}}'", "a record without a status"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        bench_begin(&bench, "device u1", rows[i].measure);
        struct record record = measured(&bench, "lstm batch=5");
        assert_int_equal(record.status, RECORD_FAILED);
        assert_int_equal(record.attempts, 2);
        assert_says(record.error, rows[i].reason);
        assert_says(record.configuration, " batch=5 ");
        record_clear(&record);
        bench_end(&bench);
    }
}

/* It says so itself, so it is well: no retry, and it measures the next one. */
static void an_error_is_a_failed_row_at_once(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench, "device u1", "fail system no-memory");
    for (int i = 0; i < 2; ++i) {
        struct record record = measured(&bench, "conv2d batch=3");
        assert_int_equal(record.status, RECORD_FAILED);
        assert_int_equal(record.attempts, 1);
        assert_string_equal(record.error, "no-memory");
        record_clear(&record);
    }
    assert_int_equal(starts(&bench), 1);
    bench_end(&bench);
}

static void what_comes_late_is_nobodys(void **state)
{
    (void)state;
    struct bench bench;
    struct pollfd descriptors[2];
    nfds_t count = 2;
    bench_begin(&bench, "device u1", "record \"$(asked)\"; record \"$(asked)\"");
    struct record record = measured(&bench, "conv2d batch=3");
    record_clear(&record);
    while (count > 0) { /* until the second one has cost the worker its place */
        executor_poll(bench.executor, descriptors, &count);
        poll(descriptors, count, 10);
        executor_step(bench.executor);
    }
    record = measured(&bench, "conv2d batch=4");
    assert_int_equal(record.status, RECORD_MEASURED);
    assert_says(record.configuration, "batch=4 ");
    assert_int_equal(record.attempts, 1);
    assert_int_equal(starts(&bench), 2);
    record_clear(&record);
    bench_end(&bench);
}

/* ---- rows that wait for their counters ---- */

static void give_work_that_waits(struct bench *bench, const char *configuration)
{
    struct request request = request_default(REQUEST_MEASURE);
    struct error error;
    request.count_later = true;
    assert_int_equal(config_parse(configuration, &request.config, &error), STATUS_OK);
    struct message message = {MESSAGE_MEASURE, 0, request_encode(&request)};
    executor_handle(bench->executor, &message);
    free(message.text);
}

static void tell_to_count(struct bench *bench)
{
    struct message message = {MESSAGE_COUNT, 0, NULL};
    executor_handle(bench->executor, &message);
}

static void assert_message(struct bench *bench, enum message_kind kind, const char *part)
{
    char *text = wait_for(bench, kind);
    assert_says(text, part);
    free(text);
}

/* With two rows that wait. */
static void bench_begin_waiting(struct bench *bench, const char *measure, const char *count)
{
    struct error error;
    bench_make(bench);
    bench->count = count;
    write_worker(bench, last_kind(), "device u1", measure);
    bench_create(bench, last_kind(), 0);
    assert_int_equal(executor_open(bench->executor, &error), STATUS_OK);
    executor_start(bench->executor);
    free(collected_take(&bench->sent, 0, MESSAGE_DEVICE));
    give_work_that_waits(bench, "conv2d batch=3");
    assert_message(bench, MESSAGE_TIMED, " batch=3 ");
    give_work_that_waits(bench, "conv2d batch=4");
    assert_message(bench, MESSAGE_TIMED, " batch=4 ");
}

static const char measures[] =
    "case $line in *count_later*) timed \"$(asked)\" ;; *) record \"$(asked)\" ;; esac";

static void rows_that_wait_are_counted(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin_waiting(&bench, measures, NULL);
    tell_to_count(&bench);
    assert_message(&bench, MESSAGE_RECORD, " batch=3 ");
    assert_message(&bench, MESSAGE_RECORD, " batch=4 ");
    tell_to_count(&bench); /* nothing waits: nothing happens */
    struct record record = measured(&bench, "conv2d batch=5");
    assert_int_equal(record.attempts, 1);
    assert_int_equal(starts(&bench), 1);
    record_clear(&record);
    bench_end(&bench);
}

/* A row that is measured at once leaves those that wait alone. */
static void a_row_may_be_measured_beside_those_that_wait(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin_waiting(&bench, measures, NULL);
    struct record record = measured(&bench, "conv2d batch=5");
    record_clear(&record);
    tell_to_count(&bench);
    assert_message(&bench, MESSAGE_RECORD, " batch=3 ");
    assert_message(&bench, MESSAGE_RECORD, " batch=4 ");
    bench_end(&bench);
}

/* What the worker does when it is to count: all that wait are given back, none has failed. */
static void what_cannot_be_counted_is_given_back(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "kill -SEGV $$",    "exec sleep 100",          "echo nonsense",
        "fail device gone", "record 'conv2d batch=9'", "timed 'conv2d batch=3'",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        bench_begin_waiting(&bench, measures, rows[i]);
        tell_to_count(&bench);
        assert_message(&bench, MESSAGE_RETURNED, " batch=3 ");
        assert_message(&bench, MESSAGE_RETURNED, " batch=4 ");
        struct record record = measured(&bench, "conv2d batch=3");
        assert_int_equal(record.status, RECORD_MEASURED);
        assert_int_equal(starts(&bench), 2);
        record_clear(&record);
        bench_end(&bench);
    }
}

/* What has its record is not given back. */
static void a_worker_lost_between_two_counts(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin_waiting(&bench, measures, "[ $(grep -c . counts) = 1 ] && counted || exit 7");
    tell_to_count(&bench);
    assert_message(&bench, MESSAGE_RECORD, " batch=3 ");
    assert_message(&bench, MESSAGE_RETURNED, " batch=4 ");
    bench_end(&bench);
}

/* They are lost with the worker that measures another one; that one is tried again, by itself. */
static void what_waits_is_given_back_first(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin_waiting(&bench,
                        "case $n$(asked) in 1*batch=5*) exit 7 ;; esac;"
                        "case $line in *count_later*) timed \"$(asked)\" ;; *) record "
                        "\"$(asked)\" ;; esac",
                        NULL);
    give_work_that_waits(&bench, "conv2d batch=5");
    char *text = wait_for(&bench, MESSAGE_RECORD);
    assert_says(text, " batch=5 ");
    assert_says(text, "\"attempts\":2");
    free(text);
    assert_message(&bench, MESSAGE_RETURNED, " batch=3 ");
    assert_message(&bench, MESSAGE_RETURNED, " batch=4 ");
    bench_end(&bench);
}

static void what_waits_is_given_back_when_an_idle_worker_ends(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin_waiting(&bench, "timed \"$(asked)\"; case $(asked) in *batch=4*) exit 7 ;; esac",
                        NULL);
    assert_message(&bench, MESSAGE_RETURNED, " batch=3 ");
    assert_message(&bench, MESSAGE_RETURNED, " batch=4 ");
    tell_to_count(&bench); /* the messages have crossed */
    bench_end(&bench);
}

/* Nobody asked it to wait. */
static void a_row_that_waits_unasked_is_out_of_step(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench, "device u1", "[ $n = 1 ] && timed \"$(asked)\" || record \"$(asked)\"");
    struct record record = measured(&bench, "conv2d batch=3");
    assert_int_equal(record.attempts, 2);
    record_clear(&record);
    bench_end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_passed_on_as_it_came),
        cmocka_unit_test(a_bad_worker_is_replaced),
        cmocka_unit_test(after_the_retries_the_row_has_failed),
        cmocka_unit_test(an_error_is_a_failed_row_at_once),
        cmocka_unit_test(what_comes_late_is_nobodys),
        cmocka_unit_test(rows_that_wait_are_counted),
        cmocka_unit_test(a_row_may_be_measured_beside_those_that_wait),
        cmocka_unit_test(what_cannot_be_counted_is_given_back),
        cmocka_unit_test(a_worker_lost_between_two_counts),
        cmocka_unit_test(what_waits_is_given_back_first),
        cmocka_unit_test(what_waits_is_given_back_when_an_idle_worker_ends),
        cmocka_unit_test(a_row_that_waits_unasked_is_out_of_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
