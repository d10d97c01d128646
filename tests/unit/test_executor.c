/* A rank's half of a sweep without MPI: its worker is a scripted program, its letters are collected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "collected_post.h"
#include "ranks/executor.h"

/* A worker in shell: `describe`, `measure` and `count` are a test's own. $n is 1 in the first process, 2 in the next
 * one, and so on; $line is the request. */
static const char script[] =
    "#!/bin/sh\n"
    "cd \"$(dirname \"$0\")\"\n"
    "device() { echo '{\"reply\":\"device\",\"device\":{\"kind\":\"'${kind:-%s}'\",\"hostname\":\"n1\",\"uuid\":\"'$1'\"}}'; }\n"
    "record() { echo '{\"reply\":\"record\",\"record\":{\"configuration\":\"'\"$1\"'\",\"status\":\"measured\","
    "\"time_median\":0.1,\"mood\":7}}'; }\n"
    "fail() { echo '{\"reply\":\"error\",\"status\":\"'$1'\",\"text\":\"'$2'\"}'; }\n"
    "asked() { echo \"$line\" | sed 's/.*\"configuration\":\"\\([^\"]*\\)\".*/\\1/'; }\n"
    "timed() { echo '{\"reply\":\"timed\",\"configuration\":\"'\"$1\"'\"}'; echo \"$1\" >>waiting.$n; }\n"
    "counted() { record \"$(head -n 1 waiting.$n)\"; sed -i 1d waiting.$n; }\n"
    "n=$(($(cat starts 2>/dev/null || echo 0) + 1)); echo $n >starts\n"
    "while read -r line; do case $line in\n"
    "*'\"op\":\"devices\"'*) echo '{\"reply\":\"devices\",\"count\":2}' ;;\n"
    "*'\"op\":\"describe\"'*) %s ;;\n"
    "*'\"op\":\"measure\"'*) %s ;;\n"
    "*'\"op\":\"count\"'*) echo \"$line\" >>counts; %s ;;\n"
    "esac; done\n";

/* The rank, its worker's folder, its letters. */
struct stage {
    char folder[64], program[128];
    const char
        *count; /* what the worker does to count; NULL: the record of what has waited longest */
    struct log log;
    struct collected sent;
    struct executor *executor;
};

static const struct device_kind *last_kind(void)
{
    return &device_kinds[DEVICE_KINDS - 1];
}

static void write_worker(struct stage *stage, const struct device_kind *kind, const char *describe,
                         const char *measure)
{
    snprintf(stage->program, sizeof stage->program, "%s/%s", stage->folder, kind->worker);
    FILE *file = fopen(stage->program, "w");
    fprintf(file, script, kind->name, describe, measure, stage->count ? stage->count : "counted");
    fclose(file);
    chmod(stage->program, 0700);
}

static void stage_make(struct stage *stage)
{
    memset(stage, 0, sizeof *stage);
    strcpy(stage->folder, "/tmp/roofsweep-executor-XXXXXX");
    assert_non_null(mkdtemp(stage->folder));
    stage->log = log_create(fopen("/dev/null", "w"), LOG_WARNING, 0);
}

static void stage_create(struct stage *stage, const struct device_kind *kind, int local_rank)
{
    struct post post = collected_post(&stage->sent);
    struct executor_settings settings = {
        .station = {.worker_folder = stage->folder,
                    .device = kind,
                    .binding = {.local_rank = local_rank, .local_count = local_rank + 1},
                    .open_timeout = 1,
                    .counters = COUNTERS_OFF},
        .timeout = 3,
        .retries = 1,
        .device_key = "session/0",
    };
    sched_getaffinity(0, sizeof settings.station.binding.cpus, &settings.station.binding.cpus);
    stage->executor = executor_create(&settings, &post, &stage->log);
    assert_non_null(stage->executor);
}

/* With an open device, and rank 0 told so. */
static void stage_begin(struct stage *stage, const char *describe, const char *measure)
{
    struct error error;
    stage_make(stage);
    write_worker(stage, last_kind(), describe, measure);
    stage_create(stage, last_kind(), 0);
    if (executor_open(stage->executor, &error))
        fail_msg("%s", error.text);
    assert_string_equal(executor_device(stage->executor)->uuid, "u1");
    executor_start(stage->executor);
    char *device = collected_take(&stage->sent, 0, LETTER_DEVICE);
    assert_non_null(strstr(device, "\"key\":\"session/0\""));
    free(device);
}

static int starts(const struct stage *stage)
{
    char path[128];
    int count = 0;
    snprintf(path, sizeof path, "%s/starts", stage->folder);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%d", &count) != 1)
        count = -1;
    if (file)
        fclose(file);
    return count;
}

static void stage_end(struct stage *stage)
{
    char path[128];
    struct letter letter = {LETTER_STOP, 0, NULL};
    executor_handle(stage->executor, &letter);
    assert_true(executor_stopped(stage->executor));
    free(collected_take(&stage->sent, 0, LETTER_BYE));
    assert_int_equal(stage->sent.count, 0); /* nothing was said twice */
    executor_destroy(stage->executor);
    collected_clear(&stage->sent);
    fclose(stage->log.stream);
    static const char *const left[] = {"starts", "counts", "waiting.1", "waiting.2", "waiting.3"};
    for (size_t i = 0; i < sizeof left / sizeof *left; ++i) {
        snprintf(path, sizeof path, "%s/%s", stage->folder, left[i]);
        unlink(path);
    }
    unlink(stage->program);
    rmdir(stage->folder);
}

static void give_work(struct stage *stage, const char *configuration)
{
    struct request request = request_default(REQUEST_MEASURE);
    struct error error;
    assert_int_equal(config_parse(configuration, &request.config, &error), STATUS_OK);
    struct letter letter = {LETTER_WORK, 0, request_encode(&request)};
    executor_handle(stage->executor, &letter);
    free(letter.text);
}

/* Runs the rank's loop until it has written a letter of this kind; the caller frees it. */
static char *wait_for(struct stage *stage, enum letter_kind kind)
{
    double deadline = clock_monotonic() + 60;
    struct pollfd descriptors[2];
    nfds_t count;
    for (;;) {
        char *text = collected_take(&stage->sent, 0, kind);
        if (text)
            return text;
        if (clock_monotonic() > deadline)
            fail_msg("no letter of kind %d", (int)kind);
        executor_poll(stage->executor, descriptors, &count);
        poll(descriptors, count, 10);
        executor_step(stage->executor);
    }
}

static void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' does not say '%s'", text, part);
}

/* Gives work, and the record that comes of it; the caller clears it. */
static struct record measured(struct stage *stage, const char *configuration)
{
    struct record record;
    struct error error;
    give_work(stage, configuration);
    char *text = wait_for(stage, LETTER_RECORD);
    json_t *object = json_loads(text, 0, NULL);
    record_init(&record);
    assert_int_equal(record_decode(object, &record, &error), STATUS_OK);
    assert_string_equal(record.device_key, "session/0");
    json_decref(object);
    free(text);
    return record;
}

static void a_record_is_passed_on_as_it_came(void **state)
{
    (void)state;
    struct stage stage;
    stage_begin(&stage, "device u1", "record \"$(asked)\"");
    assert_false(executor_works(stage.executor));
    give_work(&stage, "conv2d batch=3");
    assert_true(executor_works(stage.executor));
    char *text = wait_for(&stage, LETTER_RECORD);
    assert_false(executor_works(stage.executor));
    assert_says(text, "\"mood\":7");
    assert_says(text, "\"attempts\":1");
    assert_says(text, "\"device_key\":\"session/0\"");
    assert_says(text, "batch=3 ");
    free(text);
    assert_int_equal(starts(&stage), 1);
    stage_end(&stage);
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
        struct stage stage;
        char measure[200];
        snprintf(measure, sizeof measure, "if [ $n = 1 ]; then %s; else record \"$(asked)\"; fi",
                 rows[i]);
        stage_begin(&stage, "device u1", measure);
        struct record record = measured(&stage, "conv2d batch=3");
        assert_int_equal(record.status, RECORD_MEASURED);
        assert_int_equal(record.attempts, 2);
        assert_int_equal(starts(&stage), 2);
        record_clear(&record);
        stage_end(&stage);
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
        {"exec sleep 100", "timed out after 3 s"},
        {"record 'conv2d batch=9'", "the worker's answer is about something else"},
        {"echo nonsense", "not a JSON object"},
        {"echo '{\"reply\":\"record\",\"record\":{}}'", "a record without a status"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct stage stage;
        stage_begin(&stage, "device u1", rows[i].measure);
        struct record record = measured(&stage, "lstm batch=5");
        assert_int_equal(record.status, RECORD_FAILED);
        assert_int_equal(record.attempts, 2);
        assert_says(record.error, rows[i].reason);
        assert_says(record.configuration, " batch=5 ");
        record_clear(&record);
        stage_end(&stage);
    }
}

/* It says so itself, so it is well: no retry, and it measures the next one. */
static void an_error_is_a_failed_row_at_once(void **state)
{
    (void)state;
    struct stage stage;
    stage_begin(&stage, "device u1", "fail system no-memory");
    for (int i = 0; i < 2; ++i) {
        struct record record = measured(&stage, "conv2d batch=3");
        assert_int_equal(record.status, RECORD_FAILED);
        assert_int_equal(record.attempts, 1);
        assert_string_equal(record.error, "no-memory");
        record_clear(&record);
    }
    assert_int_equal(starts(&stage), 1);
    stage_end(&stage);
}

static void what_comes_late_is_nobodys(void **state)
{
    (void)state;
    struct stage stage;
    struct pollfd descriptors[2];
    nfds_t count = 2;
    stage_begin(&stage, "device u1", "record \"$(asked)\"; record \"$(asked)\"");
    struct record record = measured(&stage, "conv2d batch=3");
    record_clear(&record);
    while (count > 0) { /* until the second one has cost the worker its place */
        executor_poll(stage.executor, descriptors, &count);
        poll(descriptors, count, 10);
        executor_step(stage.executor);
    }
    record = measured(&stage, "conv2d batch=4");
    assert_int_equal(record.status, RECORD_MEASURED);
    assert_says(record.configuration, "batch=4 ");
    assert_int_equal(record.attempts, 1);
    assert_int_equal(starts(&stage), 2);
    record_clear(&record);
    stage_end(&stage);
}

/* ---- rows that wait for their counters ---- */

static void give_work_that_waits(struct stage *stage, const char *configuration)
{
    struct request request = request_default(REQUEST_MEASURE);
    struct error error;
    request.count_later = true;
    assert_int_equal(config_parse(configuration, &request.config, &error), STATUS_OK);
    struct letter letter = {LETTER_WORK, 0, request_encode(&request)};
    executor_handle(stage->executor, &letter);
    free(letter.text);
}

static void tell_to_count(struct stage *stage)
{
    struct letter letter = {LETTER_COUNT, 0, NULL};
    executor_handle(stage->executor, &letter);
}

static void assert_letter(struct stage *stage, enum letter_kind kind, const char *part)
{
    char *text = wait_for(stage, kind);
    assert_says(text, part);
    free(text);
}

/* With two rows that wait. */
static void stage_begin_waiting(struct stage *stage, const char *measure, const char *count)
{
    struct error error;
    stage_make(stage);
    stage->count = count;
    write_worker(stage, last_kind(), "device u1", measure);
    stage_create(stage, last_kind(), 0);
    assert_int_equal(executor_open(stage->executor, &error), STATUS_OK);
    executor_start(stage->executor);
    free(collected_take(&stage->sent, 0, LETTER_DEVICE));
    give_work_that_waits(stage, "conv2d batch=3");
    assert_letter(stage, LETTER_TIMED, " batch=3 ");
    give_work_that_waits(stage, "conv2d batch=4");
    assert_letter(stage, LETTER_TIMED, " batch=4 ");
}

static const char measures[] =
    "case $line in *count_later*) timed \"$(asked)\" ;; *) record \"$(asked)\" ;; esac";

static void rows_that_wait_are_counted(void **state)
{
    (void)state;
    struct stage stage;
    stage_begin_waiting(&stage, measures, NULL);
    tell_to_count(&stage);
    assert_letter(&stage, LETTER_RECORD, " batch=3 ");
    assert_letter(&stage, LETTER_RECORD, " batch=4 ");
    tell_to_count(&stage); /* nothing waits: nothing happens */
    struct record record = measured(&stage, "conv2d batch=5");
    assert_int_equal(record.attempts, 1);
    assert_int_equal(starts(&stage), 1);
    record_clear(&record);
    stage_end(&stage);
}

/* A row that is measured at once leaves those that wait alone. */
static void a_row_may_be_measured_beside_those_that_wait(void **state)
{
    (void)state;
    struct stage stage;
    stage_begin_waiting(&stage, measures, NULL);
    struct record record = measured(&stage, "conv2d batch=5");
    record_clear(&record);
    tell_to_count(&stage);
    assert_letter(&stage, LETTER_RECORD, " batch=3 ");
    assert_letter(&stage, LETTER_RECORD, " batch=4 ");
    stage_end(&stage);
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
        struct stage stage;
        stage_begin_waiting(&stage, measures, rows[i]);
        tell_to_count(&stage);
        assert_letter(&stage, LETTER_BACK, " batch=3 ");
        assert_letter(&stage, LETTER_BACK, " batch=4 ");
        struct record record = measured(&stage, "conv2d batch=3");
        assert_int_equal(record.status, RECORD_MEASURED);
        assert_int_equal(starts(&stage), 2);
        record_clear(&record);
        stage_end(&stage);
    }
}

/* What has its record is not given back. */
static void a_worker_lost_between_two_counts(void **state)
{
    (void)state;
    struct stage stage;
    stage_begin_waiting(&stage, measures, "[ $(grep -c . counts) = 1 ] && counted || exit 7");
    tell_to_count(&stage);
    assert_letter(&stage, LETTER_RECORD, " batch=3 ");
    assert_letter(&stage, LETTER_BACK, " batch=4 ");
    stage_end(&stage);
}

/* They are lost with the worker that measures another one; that one is tried again, by itself. */
static void what_waits_is_given_back_first(void **state)
{
    (void)state;
    struct stage stage;
    stage_begin_waiting(&stage,
                        "case $n$(asked) in 1*batch=5*) exit 7 ;; esac;"
                        "case $line in *count_later*) timed \"$(asked)\" ;; *) record "
                        "\"$(asked)\" ;; esac",
                        NULL);
    give_work_that_waits(&stage, "conv2d batch=5");
    char *text = wait_for(&stage, LETTER_RECORD);
    assert_says(text, " batch=5 ");
    assert_says(text, "\"attempts\":2");
    free(text);
    assert_letter(&stage, LETTER_BACK, " batch=3 ");
    assert_letter(&stage, LETTER_BACK, " batch=4 ");
    stage_end(&stage);
}

static void what_waits_is_given_back_when_an_idle_worker_ends(void **state)
{
    (void)state;
    struct stage stage;
    stage_begin_waiting(&stage, "timed \"$(asked)\"; case $(asked) in *batch=4*) exit 7 ;; esac",
                        NULL);
    assert_letter(&stage, LETTER_BACK, " batch=3 ");
    assert_letter(&stage, LETTER_BACK, " batch=4 ");
    tell_to_count(&stage); /* the letters have crossed */
    stage_end(&stage);
}

/* Nobody asked it to wait. */
static void a_row_that_waits_unasked_is_out_of_step(void **state)
{
    (void)state;
    struct stage stage;
    stage_begin(&stage, "device u1", "[ $n = 1 ] && timed \"$(asked)\" || record \"$(asked)\"");
    struct record record = measured(&stage, "conv2d batch=3");
    assert_int_equal(record.attempts, 2);
    record_clear(&record);
    stage_end(&stage);
}

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
        struct stage stage;
        stage_begin(&stage, rows[i].describe, "exit 7");
        give_work(&stage, "conv2d batch=3");
        char *text = wait_for(&stage, LETTER_LOST);
        assert_says(text, rows[i].reason);
        free(text);
        assert_int_equal(starts(&stage), 4);
        stage_end(&stage);
    }
}

static void two_failures_to_open_are_survived(void **state)
{
    (void)state;
    struct stage stage;
    stage_begin(&stage, "case $n in 2|3) exit 3 ;; *) device u1 ;; esac",
                "[ $n = 1 ] && exit 7; record \"$(asked)\"");
    struct record record = measured(&stage, "conv2d batch=3");
    assert_int_equal(record.status, RECORD_MEASURED);
    assert_int_equal(record.attempts, 2); /* of the configuration, not of the device */
    assert_int_equal(starts(&stage), 4);
    record_clear(&record);
    stage_end(&stage);
}

/* Before the sweep the rank waits for it; the steps are the same. */
static void a_worker_is_replaced_before_the_sweep(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_make(&stage);
    write_worker(&stage, last_kind(), "[ $n -lt 3 ] && device u1 || exit 3", ":");
    stage_create(&stage, last_kind(), 0);
    assert_int_equal(executor_open(stage.executor, &error), STATUS_OK);
    assert_int_equal(executor_reopen(stage.executor, &error), STATUS_OK);
    assert_int_equal(starts(&stage), 2);
    assert_int_equal(stage.sent.count, 0);

    assert_int_equal(executor_reopen(stage.executor, &error), STATUS_DEVICE);
    assert_says(error.text, "ended with status 3");
    assert_int_equal(starts(&stage), 5);
    assert_int_equal(stage.sent.count, 0); /* rank 0 hears of it once it begins */
    executor_start(stage.executor);
    char *text = collected_take(&stage.sent, 0, LETTER_LOST);
    assert_says(text, "u1 on n1: worker ended with status 3");
    free(text);
    stage_end(&stage);
}

/* What the first worker does when it is asked for its device; the second one has it. */
static void a_worker_lost_at_opening_costs_a_try(void **state)
{
    (void)state;
    static const char *const rows[] = {"kill -KILL $$", "exit 7", "exec sleep 100"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct stage stage;
        char describe[200];
        snprintf(describe, sizeof describe, "[ $n = 1 ] && %s; device u1", rows[i]);
        stage_begin(&stage, describe, "record \"$(asked)\"");
        assert_null(executor_lost(stage.executor));
        assert_int_equal(starts(&stage), 2);
        struct record record = measured(&stage, "conv2d batch=3");
        assert_int_equal(record.status, RECORD_MEASURED);
        record_clear(&record);
        stage_end(&stage);
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
        struct stage stage;
        struct error error;
        char host[HOST_NAME_MAX + 1], expected[400];
        stage_make(&stage);
        write_worker(&stage, &device_kinds[0], rows[i].describe, ":");
        stage_create(&stage, NULL, 1);
        double start = clock_monotonic();
        assert_int_equal(executor_open(stage.executor, &error), STATUS_OK);
        assert_true(clock_monotonic() - start < 3.5);
        assert_non_null(executor_lost(stage.executor));
        assert_false(device_is_open(executor_device(stage.executor)));
        assert_ptr_equal(executor_kind(stage.executor), &device_kinds[0]);
        assert_int_equal(starts(&stage), rows[i].starts);
        executor_start(stage.executor);
        char *text = collected_take(&stage.sent, 0, LETTER_LOST);
        gethostname(host, sizeof host);
        snprintf(expected, sizeof expected, "GPU 1 on %s: ", host);
        assert_says(text, expected);
        assert_says(text, rows[i].reason);
        free(text);
        stage_end(&stage);
    }
}

/* It says itself that there is nothing to open, which is for the user to mend. */
static void an_error_at_opening_is_no_lost_device(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_make(&stage);
    write_worker(&stage, last_kind(), "fail device too-old", ":");
    stage_create(&stage, last_kind(), 0);
    assert_int_equal(executor_open(stage.executor, &error), STATUS_DEVICE);
    assert_string_equal(error.text, "too-old");
    assert_null(executor_lost(stage.executor));
    assert_int_equal(starts(&stage), 1);
    stage_end(&stage);
}

static void a_signal_ends_the_waiting_for_a_worker(void **state)
{
    (void)state;
    static const volatile sig_atomic_t signalled = 1;
    struct stage stage;
    struct error error;
    struct post post;
    stage_make(&stage);
    post = collected_post(&stage.sent);
    write_worker(&stage, last_kind(), "exec sleep 100", ":");
    struct executor_settings settings = {
        .station = {.worker_folder = stage.folder,
                    .device = last_kind(),
                    .open_timeout = 60,
                    .interrupted = &signalled},
    };
    sched_getaffinity(0, sizeof settings.station.binding.cpus, &settings.station.binding.cpus);
    stage.executor = executor_create(&settings, &post, &stage.log);
    double start = clock_monotonic();
    assert_int_equal(executor_open(stage.executor, &error), STATUS_INTERRUPTED);
    assert_true(clock_monotonic() - start < 5);
    stage_end(&stage);
}

static void auto_falls_to_the_next_kind_and_says_why(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    char expected[200];
    stage_make(&stage);
    write_worker(&stage, last_kind(), "device u1", ":");
    stage_create(&stage, NULL, 0);
    assert_int_equal(executor_open(stage.executor, &error), STATUS_OK);
    assert_ptr_equal(executor_kind(stage.executor), last_kind());
    snprintf(expected, sizeof expected, "%s, because no %s can be used: cannot start %s/%s",
             last_kind()->name, device_kinds[0].noun, stage.folder, device_kinds[0].worker);
    assert_int_equal(strncmp(executor_choice(stage.executor), expected, strlen(expected)), 0);
    stage_end(&stage);
}

static void a_kind_that_was_named_is_the_only_one(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_make(&stage);
    write_worker(&stage, last_kind(), "device u1", ":");
    stage_create(&stage, &device_kinds[0], 0);
    assert_int_equal(executor_open(stage.executor, &error), STATUS_DEVICE);
    assert_says(error.text, "was it built");
    assert_int_equal(starts(&stage), 0);
    stage_end(&stage);
}

/* The row that opened it is what decides later on, so the worker must be of that kind. */
static void a_worker_of_another_kind_is_refused(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_make(&stage);
    write_worker(&stage, last_kind(), "kind=abacus; device u1", ":");
    stage_create(&stage, last_kind(), 0);
    assert_int_equal(executor_open(stage.executor, &error), STATUS_DEVICE);
    assert_says(error.text, "describes a device of kind 'abacus'");
    stage_end(&stage);
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
        struct stage stage;
        struct error error;
        char describe[200];
        snprintf(describe, sizeof describe,
                 "case $line in *'%s'*) device u1 ;; *) fail usage wrong ;; esac", rows[i].index);
        stage_make(&stage);
        write_worker(&stage, &device_kinds[0], describe, ":");
        stage_create(&stage, NULL, rows[i].rank);
        assert_int_equal(executor_open(stage.executor, &error), STATUS_OK);
        assert_int_equal(executor_device(stage.executor)->index, rows[i].rank);
        stage_end(&stage);
    }
    struct stage stage;
    struct error error;
    stage_make(&stage);
    write_worker(&stage, &device_kinds[0], "device u1", ":");
    stage_create(&stage, NULL, 2);
    assert_int_equal(executor_open(stage.executor, &error), STATUS_DEVICE);
    assert_says(error.text, "rank 2 of 3 on this node has no GPU of its own: 2 are visible");
    stage_end(&stage);
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
