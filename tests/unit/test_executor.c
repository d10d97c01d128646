/* A rank's half of a sweep: opening, loss, replacement of workers; rows, waiting, counting. */

#include "unit.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "executor_bench.h"

/* ---- the device ---- */

/* The worker lists two devices: a third rank must neither share one nor take a device of a
 * different kind. The error of a worker without devices names the remedy. */
TEST(failures_to_open_have_a_reason)
{
    static const struct {
        struct bench_settings settings;
        const char *why;
        int starts;
    } rows[] = {
        {{{.describe = "fail device too-old"}, .kind = LAST_KIND, .requested = LAST_KIND},
         "too-old",
         1},
        {{.kind = LAST_KIND, .requested = FIRST_KIND}, "was it built", 0}, /* the user's kind */
        {{{.describe = "kind=abacus; device u1"}, .kind = LAST_KIND, .requested = LAST_KIND},
         "describes a device of kind 'abacus'",
         1},
        {{.kind = FIRST_KIND, .local_rank = 2},
         "rank 2 of 3 on this node has no GPU of its own: it sees 2, which others have; start at "
         "most 2 ranks per node, each with one (srun --ntasks-per-node=2 --gpus-per-task=1",
         1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        bench_create(&bench, &rows[i].settings);
        assert_fails(executor_open(bench.executor, &failure), STATUS_DEVICE, rows[i].why);
        assert_null(executor_lost(bench.executor));
        assert_int_equal(starts(&bench), rows[i].starts);
        bench_end(&bench);
    }
}

/* The watcher survives a worker that was lost over a row. A watcher without an answer does not
 * delay the end; a warning is logged. */
TEST(health_is_reported_at_the_end)
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
        fclose(bench.log.stream);
        bench.log.stream = tmpfile();
        executor_handle(bench.executor, &stop);
        assert_false(executor_stopped(bench.executor));
        if (answered)
            assert_message(&bench, MESSAGE_HEALTH, "\"health_end\":{\"xids\":1");
        assert_message(&bench, MESSAGE_FINISHED, "");
        assert_true(executor_stopped(bench.executor));
        char said[500] = "";
        rewind(bench.log.stream);
        assert_true(fread(said, 1, sizeof said - 1, bench.log.stream) < sizeof said - 1);
        assert_true(answered != (strstr(said, "no health at the end: ") != NULL));
        bench_end(&bench);
    }
}

TEST(auto_takes_the_next_kind_with_the_reason)
{
    struct bench bench;
    char expected[200];
    bench_create(&bench, &(struct bench_settings){.kind = LAST_KIND});
    assert_ok(executor_open(bench.executor, &failure));
    assert_ptr_equal(executor_kind(bench.executor), LAST_KIND);
    snprintf(expected, sizeof expected, "%s, because no %s can be used: cannot start %s/%s",
             LAST_KIND->name, FIRST_KIND->noun, bench.folder, FIRST_KIND->worker);
    assert_int_equal(strncmp(executor_reason(bench.executor), expected, strlen(expected)), 0);
    bench_end(&bench);
}

TEST(a_rank_takes_the_device_of_its_number)
{
    static const char *const describe[] = {
        "case $line in *'\"index\":0'*) device u1 ;; *) fail usage wrong ;; esac",
        "case $line in *'\"index\":1'*) device u1 ;; *) fail usage wrong ;; esac"};
    for (int rank = 0; rank < 2; ++rank) {
        struct bench bench;
        bench_create(&bench, &(struct bench_settings){.script.describe = describe[rank],
                                                      .kind = FIRST_KIND,
                                                      .local_rank = rank});
        assert_ok(executor_open(bench.executor, &failure));
        assert_int_equal(executor_device(bench.executor)->index, rank);
        bench_end(&bench);
    }
}

/* The worker that lists devices also opens one, unless its rank afterwards gets fewer cores. */
TEST(a_rank_lists_devices_before_it_opens_one)
{
    for (int fewer = 0; fewer < 2; ++fewer) {
        struct bench bench;
        struct binding binding = {.local_count = 1, .device = 1};
        bench_create(&bench, &(struct bench_settings){.kind = FIRST_KIND});
        struct visible visible = executor_visible(bench.executor);
        assert_int_equal(visible.count, 2);
        assert_int_equal(visible.address[1], 6912);
        if (!fewer)
            sched_getaffinity(0, sizeof binding.cpus, binding.cpus.part);
        executor_bind(bench.executor, &binding);
        assert_ok(executor_open(bench.executor, &failure));
        assert_int_equal(executor_device(bench.executor)->index, 1);
        assert_int_equal(starts(&bench), 1 + fewer);
        bench_end(&bench);
    }
}

TEST(a_signal_ends_the_wait_for_a_worker)
{
    static const volatile sig_atomic_t signalled = 1;
    struct bench bench;
    bench_create(&bench, &(struct bench_settings){.script.describe = "hang",
                                                  .kind = LAST_KIND,
                                                  .requested = LAST_KIND,
                                                  .interrupted = &signalled});
    assert_int_equal(executor_open(bench.executor, &failure), STATUS_INTERRUPTED);
    bench_end(&bench);
}

TEST(a_device_that_never_opens_is_reported_by_name)
{
    static const struct {
        struct worker_script script;
        const char *reason;
        int starts;
    } rows[] = {
        {{.describe = "echo 'out of luck' >&2; kill -KILL $$"},
         "worker was killed by signal 9 (Killed); it last printed: out of luck",
         3},
        /* Three tries have a common time limit, which two timeouts exceed. */
        {{.describe = "hang", .timeout = 1.5}, "timed out after 1.5 s", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        char host[HOST_NAME_MAX + 1], expected[400];
        bench_create(&bench, &(struct bench_settings){
                                 .script = rows[i].script, .kind = FIRST_KIND, .local_rank = 1});
        assert_ok(executor_open(bench.executor, &failure));
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

/* Three new workers in a row must fail; a worker that opens the device resets the count. */
TEST(a_device_is_lost_after_three_workers)
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

/* ---- rows ---- */

#define AT_FIRST(what) "if [ $n = 1 ]; then " what "; else well; fi"

/* A lost worker costs an attempt; failures to open the device do not. An error that the worker
 * reports is final. */
TEST(rows_are_measured_or_have_a_reason)
{
    static const struct {
        struct worker_script script;
        int attempts, starts;
        const char *error; /* NULL: measured */
    } rows[] = {
        {{.measure = "well"}, 1, 1, NULL},
        {{.measure = AT_FIRST("exit 7")}, 2, 2, NULL},
        {{.measure = AT_FIRST("kill -SEGV $$")}, 2, 2, NULL},
        {{.measure = AT_FIRST("hang"), .timeout = 1}, 2, 2, NULL},
        {{.measure = AT_FIRST("record 'conv2d batch=9'")}, 2, 2, NULL},
        {{.measure = AT_FIRST("timed \"$(requested)\"")}, 2, 2, NULL}, /* the row may not wait */
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

/* The signal ends the worker, or the worker's shell exits with 130, or the signal ended the row's
 * program: the row has no record. */
TEST(a_signal_to_all_leaves_no_record)
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

TEST(a_rank_passes_the_workers_text_on)
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

TEST(late_replies_are_ignored)
{
    struct bench bench;
    struct pollfd descriptors[2];
    nfds_t count = 2;
    bench_begin(&bench, (struct worker_script){.measure = "well; well"});
    struct record record = measured(&bench, "conv2d batch=3");
    record_clear(&record);
    while (count > 0) { /* the second record ends the worker */
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

static void order_count(struct bench *bench)
{
    const struct message message = {MESSAGE_COUNT, 0, NULL};
    executor_handle(bench->executor, &message);
}

static void bench_begin_waiting(struct bench *bench, struct worker_script script)
{
    bench_begin(bench, script);
    give_work(bench, "conv2d batch=3", true);
    assert_message(bench, MESSAGE_TIMED, " batch=3 ");
    give_work(bench, "conv2d batch=4", true);
    assert_message(bench, MESSAGE_TIMED, " batch=4 ");
}

TEST(each_round_has_a_new_worker)
{
    static const int workers[] = {1, 1, 2, 2, 3};
    struct bench bench;
    bench_begin(&bench, (struct worker_script){.describe = NULL});
    for (int i = 0; i < 5; ++i) {
        bench.round = i / 2 + 1;
        struct record record = measured(&bench, "conv2d batch=1");
        assert_int_equal(record.status, RECORD_MEASURED);
        assert_int_equal(starts(&bench), workers[i]);
        record_clear(&record);
    }
    bench_end(&bench);
}

/* A row that is measured at once leaves the waiting rows alone. */
TEST(waiting_rows_are_counted)
{
    struct bench bench;
    bench_begin_waiting(&bench, (struct worker_script){.count = NULL});
    struct record record = measured(&bench, "conv2d batch=5");
    record_clear(&record);
    order_count(&bench);
    assert_message(&bench, MESSAGE_RECORD, " batch=3 ");
    assert_message(&bench, MESSAGE_RECORD, " batch=4 ");
    order_count(&bench); /* no row waits, so the request has no effect */
    record = measured(&bench, "conv2d batch=6");
    assert_int_equal(record.attempts, 1);
    assert_int_equal(starts(&bench), 1);
    record_clear(&record);
    bench_end(&bench);
}

/* Failures while counting: all waiting rows return and none fails. Rows with a record stay. */
TEST(rows_that_cannot_be_counted_return)
{
    static const struct worker_script rows[] = {
        {.count = "[ $(grep -c . counts) = 1 ] && counted || exit 7"}, /* the first of two */
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
        order_count(&bench);
        assert_message(&bench, i == 0 ? MESSAGE_RECORD : MESSAGE_RETURNED, " batch=3 ");
        assert_message(&bench, MESSAGE_RETURNED, " batch=4 ");
        struct record record = measured(&bench, "conv2d batch=3");
        assert_int_equal(record.status, RECORD_MEASURED);
        assert_int_equal(starts(&bench), 2);
        record_clear(&record);
        bench_end(&bench);
    }
}

/* Waiting rows are lost with the worker of another row; that row is tried again, alone. */
TEST(waiting_rows_return_first)
{
    struct bench bench;
    bench_begin_waiting(&bench,
                        (struct worker_script){
                            .measure = "case $n$(requested) in 1*batch=5*) exit 7 ;; esac; well"});
    give_work(&bench, "conv2d batch=5", true);
    assert_message(&bench, MESSAGE_RECORD, "2 {");
    assert_message(&bench, MESSAGE_RETURNED, " batch=3 ");
    assert_message(&bench, MESSAGE_RETURNED, " batch=4 ");
    bench_end(&bench);
}

TEST(waiting_rows_return_when_an_idle_worker_ends)
{
    struct bench bench;
    bench_begin_waiting(
        &bench,
        (struct worker_script){.measure = "well; case $(requested) in *batch=4*) exit 7 ;; esac"});
    assert_message(&bench, MESSAGE_RETURNED, " batch=3 ");
    assert_message(&bench, MESSAGE_RETURNED, " batch=4 ");
    order_count(&bench); /* the order and the returned rows have crossed */
    bench_end(&bench);
}
