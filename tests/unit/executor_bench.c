#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor_bench.h"

#include "base/clock.h"

/* $n is the number of the process, from 1; $line is the request. */
static const char words[] =
    "#!/bin/sh\n"
    "cd \"$(dirname \"$0\")\"\n"
    "device() { echo '{\"reply\":\"device\",\"device\":{\"kind\":\"'${kind:-%s}'\",\"hostname\":"
    "\"n1\",\"uuid\":\"'$1'\"}}'; }\n"
    "record() { echo '{\"reply\":\"record\",\"record\":{\"configuration\":\"'\"$1\"'\",\"status\":"
    "\"measured\",\"time_median\":0.1,\"mood\":7}}'; }\n"
    "fail() { echo '{\"reply\":\"error\",\"status\":\"'$1'\",\"text\":\"'$2'\"}'; }\n"
    "requested() { echo \"$line\" | sed 's/.*\"configuration\":\"\\([^\"]*\\)\".*/\\1/'; }\n"
    "timed() { echo '{\"reply\":\"timed\",\"configuration\":\"'\"$1\"'\"}'; echo \"$1\" "
    ">>waiting.$n; }\n"
    "counted() { record \"$(head -n 1 waiting.$n)\"; sed -i 1d waiting.$n; }\n"
    "well() { case $line in *count_later*) timed \"$(requested)\" ;; *) record \"$(requested)\" ;; "
    "esac; }\n"
    "hang() { exec sleep 1000; }\n"
    "n=$(($(cat starts 2>/dev/null || echo 0) + 1)); echo $n >starts\n"
    "while read -r line; do case $line in\n"
    "*'\"op\":\"devices\"'*) echo '{\"reply\":\"devices\",\"count\":2,\"addresses\":"
    "[6656,6912]}' ;;\n"
    "*'\"op\":\"describe\"'*) %s ;;\n"
    "*'\"op\":\"measure\"'*) %s ;;\n"
    "*'\"op\":\"count\"'*) echo \"$line\" >>counts; %s ;;\n"
    "esac; done\n";

void bench_create(struct bench *bench, const struct bench_settings *settings)
{
    const struct worker_script *script = &settings->script;
    const double timeout = script->timeout > 0 ? script->timeout : 60;
    char program[128];
    *bench = (struct bench){.log = log_create(fopen("/dev/null", "w"), LOG_WARNING, 0)};
    strcpy(bench->folder, "/tmp/roofsweep-executor-XXXXXX");
    assert_non_null(mkdtemp(bench->folder));
    snprintf(program, sizeof program, "%s/%s", bench->folder, settings->kind->worker);
    FILE *file = fopen(program, "w");
    fprintf(file, words, settings->kind->name, script->describe ? script->describe : "device u1",
            script->measure ? script->measure : "well", script->count ? script->count : "counted");
    fclose(file);
    chmod(program, 0700);
    struct sender sender = collected_sender(&bench->sent);
    struct executor_settings executor = {
        .worker_folder = bench->folder,
        .device = settings->requested,
        .binding = {.local_rank = settings->local_rank,
                    .local_count = settings->local_rank + 1,
                    .device = settings->local_rank},
        .open_timeout = timeout,
        .interrupted = settings->interrupted,
        .timeout = timeout,
        .retries = 1,
        .device_key = "session/0",
    };
    sched_getaffinity(0, sizeof executor.binding.cpus, executor.binding.cpus.part);
    bench->executor = executor_create(&executor, &sender, &bench->log);
    assert_non_null(bench->executor);
}

void bench_begin(struct bench *bench, struct worker_script script)
{
    bench_create(bench, &(struct bench_settings){
                            .script = script, .kind = LAST_KIND, .requested = LAST_KIND});
    assert_ok(executor_open(bench->executor, &failure));
    assert_string_equal(executor_device(bench->executor)->uuid, "u1");
    executor_start(bench->executor);
    assert_message(bench, MESSAGE_DEVICE, "\"key\":\"session/0\"");
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
    static const char *const left[] = {"starts", "counts", "waiting.1", "waiting.2", "waiting.3"};
    const struct message message = {MESSAGE_STOP, 0, NULL};
    char path[128];
    executor_handle(bench->executor, &message);
    assert_true(executor_stopped(bench->executor));
    free(collected_take(&bench->sent, 0, MESSAGE_FINISHED));
    assert_int_equal(bench->sent.count, 0); /* no message was repeated */
    executor_destroy(bench->executor);
    collected_clear(&bench->sent);
    fclose(bench->log.stream);
    for (size_t i = 0; i < sizeof left / sizeof *left + DEVICE_KINDS; ++i) {
        const char *name =
            i < DEVICE_KINDS ? device_kinds[i].worker : left[i - (size_t)DEVICE_KINDS];
        snprintf(path, sizeof path, "%s/%s", bench->folder, name);
        unlink(path);
    }
    rmdir(bench->folder);
}

void give_work(struct bench *bench, const char *configuration, bool later)
{
    struct request request = request_default(REQUEST_MEASURE);
    request.count_later = later;
    request.round = bench->round;
    strcpy(request.row, "a row");
    assert_ok(config_parse(configuration, &request.config, &failure));
    struct message message = {MESSAGE_MEASURE, 0, request_encode(&request)};
    executor_handle(bench->executor, &message);
    free(message.text);
}

/* Returns the text of the next message of this kind, which the caller frees. */
static char *wait_for(struct bench *bench, enum message_kind kind)
{
    double deadline = clock_monotonic() + 100;
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

void assert_message(struct bench *bench, enum message_kind kind, const char *part)
{
    char *text = wait_for(bench, kind);
    assert_says(text, part);
    free(text);
}

struct record measured(struct bench *bench, const char *configuration)
{
    struct record record;
    give_work(bench, configuration, false);
    char *text = wait_for(bench, MESSAGE_RECORD);
    char *json;
    const long attempts = strtol(text, &json, 10);
    record_init(&record);
    assert_ok(record_decode(json_text_of(json), &record, &failure));
    record.attempts = attempts;
    free(text);
    return record;
}
