#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "desk.h"

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

void write_worker(struct desk *desk, const struct device_kind *kind, const char *describe,
                  const char *measure)
{
    snprintf(desk->program, sizeof desk->program, "%s/%s", desk->folder, kind->worker);
    FILE *file = fopen(desk->program, "w");
    fprintf(file, script, kind->name, describe, measure, desk->count ? desk->count : "counted");
    fclose(file);
    chmod(desk->program, 0700);
}

void desk_make(struct desk *desk)
{
    memset(desk, 0, sizeof *desk);
    strcpy(desk->folder, "/tmp/roofsweep-executor-XXXXXX");
    assert_non_null(mkdtemp(desk->folder));
    desk->log = log_create(fopen("/dev/null", "w"), LOG_WARNING, 0);
}

void desk_create(struct desk *desk, const struct device_kind *kind, int local_rank)
{
    struct post post = collected_post(&desk->sent);
    struct executor_settings settings = {
        .station = {.worker_folder = desk->folder,
                    .device = kind,
                    .binding = {.local_rank = local_rank, .local_count = local_rank + 1},
                    .open_timeout = 1,
                    .counters = COUNTERS_OFF},
        .timeout = 3,
        .retries = 1,
        .device_key = "session/0",
    };
    sched_getaffinity(0, sizeof settings.station.binding.cpus, &settings.station.binding.cpus);
    desk->executor = executor_create(&settings, &post, &desk->log);
    assert_non_null(desk->executor);
}

/* With an open device, and rank 0 told so. */
void desk_begin(struct desk *desk, const char *describe, const char *measure)
{
    struct error error;
    desk_make(desk);
    write_worker(desk, last_kind(), describe, measure);
    desk_create(desk, last_kind(), 0);
    if (executor_open(desk->executor, &error))
        fail_msg("%s", error.text);
    assert_string_equal(executor_device(desk->executor)->uuid, "u1");
    executor_start(desk->executor);
    char *device = collected_take(&desk->sent, 0, LETTER_DEVICE);
    assert_non_null(strstr(device, "\"key\":\"session/0\""));
    free(device);
}

int starts(const struct desk *desk)
{
    char path[128];
    int count = 0;
    snprintf(path, sizeof path, "%s/starts", desk->folder);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%d", &count) != 1)
        count = -1;
    if (file)
        fclose(file);
    return count;
}

void desk_end(struct desk *desk)
{
    char path[128];
    struct letter letter = {LETTER_STOP, 0, NULL};
    executor_handle(desk->executor, &letter);
    assert_true(executor_stopped(desk->executor));
    free(collected_take(&desk->sent, 0, LETTER_BYE));
    assert_int_equal(desk->sent.count, 0); /* nothing was said twice */
    executor_destroy(desk->executor);
    collected_clear(&desk->sent);
    fclose(desk->log.stream);
    static const char *const left[] = {"starts", "counts", "waiting.1", "waiting.2", "waiting.3"};
    for (size_t i = 0; i < sizeof left / sizeof *left; ++i) {
        snprintf(path, sizeof path, "%s/%s", desk->folder, left[i]);
        unlink(path);
    }
    unlink(desk->program);
    rmdir(desk->folder);
}

void give_work(struct desk *desk, const char *configuration)
{
    struct request request = request_default(REQUEST_MEASURE);
    struct error error;
    assert_int_equal(config_parse(configuration, &request.config, &error), STATUS_OK);
    struct letter letter = {LETTER_WORK, 0, request_encode(&request)};
    executor_handle(desk->executor, &letter);
    free(letter.text);
}

/* Runs the rank's loop until it has written a letter of this kind; the caller frees it. */
char *wait_for(struct desk *desk, enum letter_kind kind)
{
    double deadline = clock_monotonic() + 60;
    struct pollfd descriptors[2];
    nfds_t count;
    for (;;) {
        char *text = collected_take(&desk->sent, 0, kind);
        if (text)
            return text;
        if (clock_monotonic() > deadline)
            fail_msg("no letter of kind %d", (int)kind);
        executor_poll(desk->executor, descriptors, &count);
        poll(descriptors, count, 10);
        executor_step(desk->executor);
    }
}

void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' does not say '%s'", text, part);
}

/* Gives work, and the record that comes of it; the caller clears it. */
struct record measured(struct desk *desk, const char *configuration)
{
    struct record record;
    struct error error;
    give_work(desk, configuration);
    char *text = wait_for(desk, LETTER_RECORD);
    json_t *object = json_loads(text, 0, NULL);
    record_init(&record);
    assert_int_equal(record_decode(object, &record, &error), STATUS_OK);
    assert_string_equal(record.device_key, "session/0");
    json_decref(object);
    free(text);
    return record;
}
