#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor_bench.h"

#include "base/clock.h"

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

const struct device_kind *last_kind(void)
{
    return &device_kinds[DEVICE_KINDS - 1];
}

void write_worker(struct bench *bench, const struct device_kind *kind, const char *describe,
                  const char *measure)
{
    snprintf(bench->program, sizeof bench->program, "%s/%s", bench->folder, kind->worker);
    FILE *file = fopen(bench->program, "w");
    fprintf(file, script, kind->name, describe, measure, bench->count ? bench->count : "counted");
    fclose(file);
    chmod(bench->program, 0700);
}

void bench_make(struct bench *bench)
{
    memset(bench, 0, sizeof *bench);
    strcpy(bench->folder, "/tmp/roofsweep-executor-XXXXXX");
    assert_non_null(mkdtemp(bench->folder));
    bench->log = log_create(fopen("/dev/null", "w"), LOG_WARNING, 0);
}

void bench_create(struct bench *bench, const struct device_kind *kind, int local_rank)
{
    struct sender sender = collected_sender(&bench->sent);
    struct executor_settings settings = {
        .worker_folder = bench->folder,
        .device = kind,
        .binding = {.local_rank = local_rank, .local_count = local_rank + 1},
        .open_timeout = 1,
        .counters = COUNTERS_OFF,
        .timeout = 1,
        .retries = 1,
        .device_key = "session/0",
        .job_id = "",
    };
    sched_getaffinity(0, sizeof settings.binding.cpus, &settings.binding.cpus);
    bench->executor = executor_create(&settings, &sender, &bench->log);
    assert_non_null(bench->executor);
}

/* With an open device, and rank 0 told so. */
void bench_begin(struct bench *bench, const char *describe, const char *measure)
{
    struct error error;
    bench_make(bench);
    write_worker(bench, last_kind(), describe, measure);
    bench_create(bench, last_kind(), 0);
    if (executor_open(bench->executor, &error))
        fail_msg("%s", error.text);
    assert_string_equal(executor_device(bench->executor)->uuid, "u1");
    executor_start(bench->executor);
    char *device = collected_take(&bench->sent, 0, MESSAGE_DEVICE);
    assert_non_null(strstr(device, "\"key\":\"session/0\""));
    free(device);
}

int starts(const struct bench *bench)
{
    char path[128];
    int count = 0;
    snprintf(path, sizeof path, "%s/starts", bench->folder);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%d", &count) != 1)
        count = -1;
    if (file)
        fclose(file);
    return count;
}

void bench_end(struct bench *bench)
{
    char path[128];
    struct message message = {MESSAGE_STOP, 0, NULL};
    executor_handle(bench->executor, &message);
    assert_true(executor_stopped(bench->executor));
    free(collected_take(&bench->sent, 0, MESSAGE_FINISHED));
    assert_int_equal(bench->sent.count, 0); /* nothing was said twice */
    executor_destroy(bench->executor);
    collected_clear(&bench->sent);
    fclose(bench->log.stream);
    static const char *const left[] = {"starts", "counts", "waiting.1", "waiting.2", "waiting.3"};
    for (size_t i = 0; i < sizeof left / sizeof *left; ++i) {
        snprintf(path, sizeof path, "%s/%s", bench->folder, left[i]);
        unlink(path);
    }
    unlink(bench->program);
    rmdir(bench->folder);
}

void give_work(struct bench *bench, const char *configuration)
{
    struct request request = request_default(REQUEST_MEASURE);
    struct error error;
    assert_int_equal(config_parse(configuration, &request.config, &error), STATUS_OK);
    struct message message = {MESSAGE_MEASURE, 0, request_encode(&request)};
    executor_handle(bench->executor, &message);
    free(message.text);
}

/* Runs the rank's loop until it has written a message of this kind; the caller frees it. */
char *wait_for(struct bench *bench, enum message_kind kind)
{
    double deadline = clock_monotonic() + 60;
    struct pollfd descriptors[2];
    nfds_t count;
    for (;;) {
        char *text = collected_take(&bench->sent, 0, kind);
        if (text)
            return text;
        if (clock_monotonic() > deadline)
            fail_msg("no message of kind %d", (int)kind);
        executor_poll(bench->executor, descriptors, &count);
        poll(descriptors, count, 10);
        executor_step(bench->executor);
    }
}

void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' does not say '%s'", text, part);
}

/* Gives work, and the record that comes of it; the caller clears it. */
struct record measured(struct bench *bench, const char *configuration)
{
    struct record record;
    struct error error;
    give_work(bench, configuration);
    char *text = wait_for(bench, MESSAGE_RECORD);
    json_t *object = json_loads(text, 0, NULL);
    record_init(&record);
    assert_int_equal(record_decode(object, &record, &error), STATUS_OK);
    assert_string_equal(record.device_key, "session/0");
    json_decref(object);
    free(text);
    return record;
}
