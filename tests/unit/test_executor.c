/* A rank's half of a sweep: its worker is opened, lost and replaced; rows are measured, and wait
 * for their counters. */

#include "unit.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "executor_bench.h"

/* ---- the device ---- */

/* Its worker counts two devices: a third rank must not share one, nor take another kind. One that
 * says itself that there is nothing to open tells the user what to mend. */
static void what_cannot_be_opened_says_why(void **state)
{
    static const struct {
        struct bench_settings settings;
        const char *why;
        int starts;
    } rows[] = {
        {{{.describe = "fail device too-old"}, .kind = LAST_KIND, .asked = LAST_KIND},
         "too-old",
         1},
        {{.kind = LAST_KIND, .asked = FIRST_KIND}, "was it built", 0}, /* the one that was named */
        {{{.describe = "kind=abacus; device u1"}, .kind = LAST_KIND, .asked = LAST_KIND},
         "describes a device of kind 'abacus'",
         1},
        {{.kind = FIRST_KIND, .local_rank = 2},
         "rank 2 of 3 on this node has no GPU of its own: it sees 2, which others have; start at "
         "most 2 ranks per node, each with one (srun --ntasks-per-node=2 --gpus-per-task=1",
         1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        struct error error;
        bench_create(&bench, &rows[i].settings);
        assert_int_equal(executor_open(bench.executor, &error), STATUS_DEVICE);
        assert_says(error.text, rows[i].why);
        assert_null(executor_lost(bench.executor));
        assert_int_equal(starts(&bench), rows[i].starts);
        bench_end(&bench);
    }
}

/* By a process that outlives the workers, also after one was lost over a row; one that does not
 * answer keeps nobody. */
static void health_at_the_end_is_told(void **state)
{
    for (int answered = 0; answered < 2; ++answered) {
        struct bench bench;
        char describe[500];
        const struct message stop = {MESSAGE_STOP, 0, NULL};
        snprintf(describe, sizeof describe,
                 "end=; [ \"$1\" = --watch ] && { %s; end=',\"health_end\":{\"xids\":1}'; }\n"
                 "echo '{\"reply\":\"device\",\"device\":{\"kind\":\"%s\",\"uuid\":\"u1\","
                 "\"pci_id\":\"p1\",\"health_start\":{\"xids\":0}'\"$end\"'}}'",
                 answered ? "[ \"$2\" = p1 ]" : "exit 9", LAST_KIND->name);
        bench_begin(&bench, (struct worker_script){.describe = describe, .measure = "exit 9"});
        give_work(&bench, "matmul m=8", false);
        assert_message(&bench, MESSAGE_RECORD, "worker ended with status 9");
        executor_handle(bench.executor, &stop);
        assert_false(executor_stopped(bench.executor));
        if (answered)
            assert_message(&bench, MESSAGE_HEALTH, "\"health_end\":{\"xids\":1");
        assert_message(&bench, MESSAGE_FINISHED, "");
        assert_true(executor_stopped(bench.executor));
        bench_end(&bench);
    }
}

static void auto_falls_to_the_next_kind_and_says_why(void **state)
{
    struct bench bench;
    struct error error;
    char expected[200];
    bench_create(&bench, &(struct bench_settings){.kind = LAST_KIND});
    assert_int_equal(executor_open(bench.executor, &error), STATUS_OK);
    assert_ptr_equal(executor_kind(bench.executor), LAST_KIND);
    snprintf(expected, sizeof expected, "%s, because no %s can be used: cannot start %s/%s",
             LAST_KIND->name, FIRST_KIND->noun, bench.folder, FIRST_KIND->worker);
    assert_int_equal(strncmp(executor_reason(bench.executor), expected, strlen(expected)), 0);
    bench_end(&bench);
}

static void a_numbered_device_goes_to_the_rank_of_its_number(void **state)
{
    static const char *const describe[] = {
        "case $line in *'\"index\":0'*) device u1 ;; *) fail usage wrong ;; esac",
        "case $line in *'\"index\":1'*) device u1 ;; *) fail usage wrong ;; esac"};
    for (int rank = 0; rank < 2; ++rank) {
        struct bench bench;
        struct error error;
        bench_create(&bench, &(struct bench_settings){.script.describe = describe[rank],
                                                      .kind = FIRST_KIND,
                                                      .local_rank = rank});
        assert_int_equal(executor_open(bench.executor, &error), STATUS_OK);
        assert_int_equal(executor_device(bench.executor)->index, rank);
        bench_end(&bench);
    }
}

/* The worker that looked opens the device, unless its rank keeps fewer cores. */
static void a_rank_looks_before_it_opens(void **state)
{
    for (int fewer = 0; fewer < 2; ++fewer) {
        struct bench bench;
        struct error error;
        struct binding binding = {.local_count = 1, .device = 1};
        bench_create(&bench, &(struct bench_settings){.kind = FIRST_KIND});
        struct visible visible = executor_visible(bench.executor);
        assert_int_equal(visible.count, 2);
        assert_int_equal(visible.address[1], 6912);
        if (!fewer)
            sched_getaffinity(0, sizeof binding.cpus, &binding.cpus);
        executor_bind(bench.executor, &binding);
        assert_int_equal(executor_open(bench.executor, &error), STATUS_OK);
        assert_int_equal(executor_device(bench.executor)->index, 1);
        assert_int_equal(starts(&bench), 1 + fewer);
        bench_end(&bench);
    }
}

static void a_signal_ends_the_waiting_for_a_worker(void **state)
{
    static const volatile sig_atomic_t signalled = 1;
    struct bench bench;
    struct error error;
    bench_create(&bench, &(struct bench_settings){.script.describe = "hang",
                                                  .kind = LAST_KIND,
                                                  .asked = LAST_KIND,
                                                  .interrupted = &signalled});
    assert_int_equal(executor_open(bench.executor, &error), STATUS_INTERRUPTED);
    bench_end(&bench);
}

static void a_device_that_never_opens_is_lost_by_name(void **state)
{
    static const struct {
        struct worker_script script;
        const char *reason;
        int starts;
    } rows[] = {
        {{.describe = "echo 'out of luck' >&2; kill -KILL $$"},
         "worker was killed by signal 9 (Killed); it last printed: out of luck",
         3},
        /* Within a bound: two hang as long as three may take. */
        {{.describe = "hang", .timeout = 1.5}, "timed out after 1.5 s", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        struct error error;
        char host[HOST_NAME_MAX + 1], expected[400];
        bench_create(&bench, &(struct bench_settings){
                                 .script = rows[i].script, .kind = FIRST_KIND, .local_rank = 1});
        assert_int_equal(executor_open(bench.executor, &error), STATUS_OK);
        assert_says(executor_lost(bench.executor), rows[i].reason);
        assert_false(device_is_open(executor_device(bench.executor)));
        assert_ptr_equal(executor_kind(bench.executor), FIRST_KIND);
        assert_int_equal(starts(&bench), rows[i].starts);
        executor_start(bench.executor);
        gethostname(host, sizeof host);
        snprintf(expected, sizeof expected, "GPU 1 on %s: ", host);
        assert_message(&bench, MESSAGE_DEVICE_LOST, expected);
        bench_end(&bench);
    }
}

/* Three new workers in a row must fail to open the device; one that opens it begins anew. */
static void a_device_is_lost_after_three_workers(void **state)
{
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
        bench_begin(&bench,
                    (struct worker_script){.describe = rows[i].describe, .measure = "exit 7"});
        give_work(&bench, "conv2d batch=3", false);
        assert_message(&bench, MESSAGE_DEVICE_LOST, rows[i].reason);
        assert_int_equal(starts(&bench), 4);
        bench_end(&bench);
    }
}

/* Before the sweep the rank waits for it; the steps are the same. */
static void a_worker_is_replaced_before_the_sweep(void **state)
{
    struct bench bench;
    struct error error;
    bench_create(&bench,
                 &(struct bench_settings){.script.describe = "[ $n -lt 3 ] && device u1 || exit 3",
                                          .kind = LAST_KIND,
                                          .asked = LAST_KIND});
    assert_int_equal(executor_open(bench.executor, &error), STATUS_OK);
    assert_int_equal(executor_reopen(bench.executor, &error), STATUS_OK);
    assert_int_equal(starts(&bench), 2);
    assert_int_equal(executor_reopen(bench.executor, &error), STATUS_DEVICE);
    assert_says(error.text, "ended with status 3");
    assert_int_equal(starts(&bench), 5);
    assert_int_equal(bench.sent.count, 0); /* rank 0 hears of it once it begins */
    executor_start(bench.executor);
    assert_message(&bench, MESSAGE_DEVICE_LOST, "u1 on n1: worker ended with status 3");
    bench_end(&bench);
}

/* ---- rows ---- */

#define AT_FIRST(what) "if [ $n = 1 ]; then " what "; else well; fi"

/* What becomes of a configuration. A worker that is lost over it costs an attempt, one that cannot
 * open the device does not. A worker that says itself that something went wrong is well: there is
 * no retry. */
static void a_row_is_measured_or_says_why_not(void **state)
{
    static const struct {
        struct worker_script script;
        int attempts, starts;
        const char *error; /* NULL: it is measured */
    } rows[] = {
        {{.measure = "well"}, 1, 1, NULL},
        {{.measure = AT_FIRST("exit 7")}, 2, 2, NULL},
        {{.measure = AT_FIRST("kill -SEGV $$")}, 2, 2, NULL},
        {{.measure = AT_FIRST("hang"), .timeout = 1}, 2, 2, NULL},
        {{.measure = AT_FIRST("record 'conv2d batch=9'")}, 2, 2, NULL},
        {{.measure = AT_FIRST("timed \"$(asked)\"")}, 2, 2, NULL}, /* nobody asked it to wait */
        {{.measure = AT_FIRST("device u1")}, 2, 2, NULL},
        {{.measure = AT_FIRST("echo nonsense")}, 2, 2, NULL},
        {{.measure = AT_FIRST("fail device gone")}, 2, 2, NULL},
        {{.measure = AT_FIRST("echo '{\"reply\":\"record\",\"record\":{}}'")}, 2, 2, NULL},
        {{.describe = "case $n in 2|3) exit 3 ;; *) device u1 ;; esac",
          .measure = AT_FIRST("exit 7")},
         2,
         4,
         NULL},
        {{.describe = "[ $n = 1 ] && kill -KILL $$; device u1"}, 1, 2, NULL},
        {{.describe = "[ $n = 1 ] && exit 7; device u1"}, 1, 2, NULL},
        {{.describe = "[ $n = 1 ] && hang; device u1", .timeout = 1}, 1, 2, NULL},
        {{.measure = "echo 'out of luck' >&2; exit 7"},
         2,
         2,
         "worker ended with status 7; it last printed: out of luck"},
        {{.measure = "hang", .timeout = 1}, 2, 2, "timed out after 1 s"},
        {{.measure = "record 'conv2d batch=9'"},
         2,
         2,
         "the worker's answer is about something else"},
        {{.measure = "echo nonsense"}, 2, 2, "not a JSON object"},
        {{.measure = "echo '{\"reply\":\"record\",\"record\":{}}'"},
         2,
         2,
         "a record without a status"},
        {{.measure = "fail system no-memory"}, 1, 1, "no-memory"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        bench_begin(&bench, rows[i].script);
        assert_null(executor_lost(bench.executor));
        struct record record = measured(&bench, "conv2d batch=3");
        assert_int_equal(record.status, rows[i].error ? RECORD_FAILED : RECORD_MEASURED);
        assert_int_equal(record.attempts, rows[i].attempts);
        assert_int_equal(starts(&bench), rows[i].starts);
        assert_says(record.error, rows[i].error ? rows[i].error : "");
        assert_says(record.configuration, " batch=3 ");
        record_clear(&record);
        bench_end(&bench);
    }
}

/* A worker blocks the signal; this one, or what stands around it, does not. Retries or none: a row
 * that ends with its job has no record. */
static void a_signal_to_all_leaves_no_record(void **state)
{
    static const struct worker_script scripts[] = {
        {.measure =
             "exec python3 -c 'import os, signal; signal.pthread_sigmask(signal.SIG_SETMASK, "
             "[]); os.kill(os.getpid(), signal.SIGTERM)'"},
        {.measure = "exit 130"},
        {.measure = "fail interrupted the-program-ended-of-it"},
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; ++i) {
        struct bench bench;
        bench_begin(&bench, scripts[i]);
        give_work(&bench, "conv2d batch=3", false);
        assert_message(&bench, MESSAGE_SIGNAL, "");
        assert_int_equal(starts(&bench), 1);
        assert_false(executor_works(bench.executor));
        bench_end(&bench);
    }
}

static void a_record_is_passed_on_as_it_came(void **state)
{
    struct bench bench;
    bench_begin(&bench, (struct worker_script){.count = NULL});
    assert_false(executor_works(bench.executor));
    give_work(&bench, "conv2d batch=3", false);
    assert_true(executor_works(bench.executor));
    assert_message(&bench, MESSAGE_RECORD, "\"mood\":7");
    assert_false(executor_works(bench.executor));
    bench_end(&bench);
}

static void what_comes_late_is_nobodys(void **state)
{
    struct bench bench;
    struct pollfd descriptors[2];
    nfds_t count = 2;
    bench_begin(&bench, (struct worker_script){.measure = "well; well"});
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

static void tell_to_count(struct bench *bench)
{
    const struct message message = {MESSAGE_COUNT, 0, NULL};
    executor_handle(bench->executor, &message);
}

/* With two rows that wait. */
static void bench_begin_waiting(struct bench *bench, struct worker_script script)
{
    bench_begin(bench, script);
    give_work(bench, "conv2d batch=3", true);
    assert_message(bench, MESSAGE_TIMED, " batch=3 ");
    give_work(bench, "conv2d batch=4", true);
    assert_message(bench, MESSAGE_TIMED, " batch=4 ");
}

/* A row that is measured at once leaves those that wait alone. */
static void rows_that_wait_are_counted(void **state)
{
    struct bench bench;
    bench_begin_waiting(&bench, (struct worker_script){.count = NULL});
    struct record record = measured(&bench, "conv2d batch=5");
    record_clear(&record);
    tell_to_count(&bench);
    assert_message(&bench, MESSAGE_RECORD, " batch=3 ");
    assert_message(&bench, MESSAGE_RECORD, " batch=4 ");
    tell_to_count(&bench); /* nothing waits: nothing happens */
    record = measured(&bench, "conv2d batch=6");
    assert_int_equal(record.attempts, 1);
    assert_int_equal(starts(&bench), 1);
    record_clear(&record);
    bench_end(&bench);
}

/* What the worker does when it is to count: all that wait are given back, none has failed. What has
 * its record is not given back. */
static void what_cannot_be_counted_is_given_back(void **state)
{
    static const struct worker_script rows[] = {
        {.count = "[ $(grep -c . counts) = 1 ] && counted || exit 7"}, /* of two the first */
        {.count = "kill -SEGV $$"},
        {.count = "hang", .timeout = 1},
        {.count = "echo nonsense"},
        {.count = "fail device gone"},
        {.count = "record 'conv2d batch=9'"},
        {.count = "timed 'conv2d batch=3'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        bench_begin_waiting(&bench, rows[i]);
        tell_to_count(&bench);
        assert_message(&bench, i == 0 ? MESSAGE_RECORD : MESSAGE_RETURNED, " batch=3 ");
        assert_message(&bench, MESSAGE_RETURNED, " batch=4 ");
        struct record record = measured(&bench, "conv2d batch=3");
        assert_int_equal(record.status, RECORD_MEASURED);
        assert_int_equal(starts(&bench), 2);
        record_clear(&record);
        bench_end(&bench);
    }
}

/* They are lost with the worker that measures another one; that one is tried again, by itself. */
static void what_waits_is_given_back_first(void **state)
{
    struct bench bench;
    bench_begin_waiting(
        &bench,
        (struct worker_script){.measure = "case $n$(asked) in 1*batch=5*) exit 7 ;; esac; well"});
    give_work(&bench, "conv2d batch=5", true);
    assert_message(&bench, MESSAGE_RECORD, "2 {");
    assert_message(&bench, MESSAGE_RETURNED, " batch=3 ");
    assert_message(&bench, MESSAGE_RETURNED, " batch=4 ");
    bench_end(&bench);
}

static void what_waits_is_given_back_when_an_idle_worker_ends(void **state)
{
    struct bench bench;
    bench_begin_waiting(&bench, (struct worker_script){
                                    .measure = "well; case $(asked) in *batch=4*) exit 7 ;; esac"});
    assert_message(&bench, MESSAGE_RETURNED, " batch=3 ");
    assert_message(&bench, MESSAGE_RETURNED, " batch=4 ");
    tell_to_count(&bench); /* the messages have crossed */
    bench_end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_opened_says_why),
        cmocka_unit_test(health_at_the_end_is_told),
        cmocka_unit_test(auto_falls_to_the_next_kind_and_says_why),
        cmocka_unit_test(a_numbered_device_goes_to_the_rank_of_its_number),
        cmocka_unit_test(a_rank_looks_before_it_opens),
        cmocka_unit_test(a_signal_ends_the_waiting_for_a_worker),
        cmocka_unit_test(a_device_that_never_opens_is_lost_by_name),
        cmocka_unit_test(a_device_is_lost_after_three_workers),
        cmocka_unit_test(a_worker_is_replaced_before_the_sweep),
        cmocka_unit_test(a_row_is_measured_or_says_why_not),
        cmocka_unit_test(a_signal_to_all_leaves_no_record),
        cmocka_unit_test(a_record_is_passed_on_as_it_came),
        cmocka_unit_test(what_comes_late_is_nobodys),
        cmocka_unit_test(rows_that_wait_are_counted),
        cmocka_unit_test(what_cannot_be_counted_is_given_back),
        cmocka_unit_test(what_waits_is_given_back_first),
        cmocka_unit_test(what_waits_is_given_back_when_an_idle_worker_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
