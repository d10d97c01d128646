#include "dispatcher_bench.h"

#include <stdio.h>
#include <unistd.h>

static void open_dispatcher(struct bench *bench, enum journal_mode mode)
{
    static const struct time_limit limit = {BENCH_BEGIN + 100, 100, "--time-limit 100 s"};
    const bool limited = bench->settings.limited;
    const struct dispatcher_settings settings = {
        .manifest = bench->manifest,
        .plan = bench->plan,
        .earlier = bench->earlier,
        .devices = bench->devices,
        .ranks = bench->settings.ranks,
        .session = "session",
        .job_id = "",
        .roofs_timeout = limited ? 0 : 100,
        .work_timeout = limited ? 0 : 50,
        .count_timeout = limited ? 0 : 20,
        .stop_timeout = limited ? 0 : 10,
        .limit = limited ? &limit : NULL,
    };
    assert_ok(journal_open(bench->path, mode, &bench->journal, &failure));
    bench->dispatcher = dispatcher_create(&settings, &bench->log);
    assert_non_null(bench->dispatcher);
    bench_time(bench, BENCH_BEGIN);
}

void bench_start(struct bench *bench, const struct bench_settings *settings)
{
    const char *manifest = settings->manifest;
    *bench = (struct bench){.settings = *settings};
    assert_ok(manifest_parse("test.ini", manifest, strlen(manifest), &bench->manifest, &failure));
    assert_ok(plan_create(bench->manifest, &bench->plan, &failure));
    bench->log = log_create(fopen("/dev/null", "w"), LOG_DEBUG, 0);
    for (int rank = 0; rank < settings->ranks; ++rank) {
        struct device *device = &bench->devices[rank];
        device_init(device);
        snprintf(device->key, sizeof device->key, "session/%d", rank);
        snprintf(device->uuid, sizeof device->uuid, "uuid-%d", rank);
        snprintf(device->model, sizeof device->model, rank < 2 ? "H200" : "H100");
        snprintf(device->hostname, sizeof device->hostname, "node%d", settings->hosts ? rank : 1);
        if (settings->together > 0) {
            device->count_together = settings->together;
            outcome_set(&device->counters, COUNTED_YES, NULL);
        }
    }
    strcpy(bench->path, "/tmp/roofsweep-dispatcher-XXXXXX");
    close(mkstemp(bench->path));
    unlink(bench->path);
    open_dispatcher(bench, JOURNAL_CREATE);
}

static void close_dispatcher(struct bench *bench)
{
    dispatcher_destroy(bench->dispatcher);
    journal_close(bench->journal);
    results_destroy(bench->earlier);
    collected_clear(&bench->sent);
}

void bench_start_again(struct bench *bench)
{
    close_dispatcher(bench);
    bench->earlier = bench_rows(bench);
    open_dispatcher(bench, JOURNAL_RESUME);
}

void bench_clear(struct bench *bench)
{
    close_dispatcher(bench);
    plan_destroy(bench->plan);
    manifest_destroy(bench->manifest);
    fclose(bench->log.stream);
    unlink(bench->path);
}

void bench_carry_out(struct bench *bench)
{
    struct dispatcher_action action;
    struct error error;
    while (dispatcher_next(bench->dispatcher, &action))
        switch (action.kind) {
        case ACTION_STORE_DEVICE:
            assert_ok(journal_append_text(bench->journal, "device", action.text, &failure));
            break;
        case ACTION_STORE_RECORD:
            assert_ok(journal_append_text(bench->journal,
                                          action.record->round > 1 ? "round" : "record",
                                          action.text, &failure));
            break;
        case ACTION_SYNC:
            assert_ok(journal_sync(bench->journal, &failure));
            break;
        case ACTION_SEND:
            collect(&bench->sent, action.rank, action.message, action.text, &error);
            break;
        case ACTION_PROGRESS:
            break;
        }
}

void bench_time(struct bench *bench, double now)
{
    dispatcher_time(bench->dispatcher, now);
    bench_carry_out(bench);
}

struct results *bench_rows(struct bench *bench)
{
    struct results *results;
    bool torn;
    assert_ok(journal_read(bench->path, &results, &torn, &failure));
    return results;
}

enum status bench_end(struct bench *bench, struct error *error)
{
    for (int rank = 0; rank < bench->settings.ranks; ++rank) {
        char *stop = collected_take(&bench->sent, rank, MESSAGE_STOP);
        assert_non_null(stop);
        free(stop);
        assert_null(collected_take(&bench->sent, rank, MESSAGE_STOP));
        assert_false(dispatcher_finished(bench->dispatcher));
        arrive(bench, rank, MESSAGE_FINISHED, "");
    }
    assert_true(dispatcher_finished(bench->dispatcher));
    return dispatcher_status(bench->dispatcher, error);
}

/* ---- messages of other ranks ---- */

void arrive_with_others(struct bench *bench, int from, enum message_kind kind, const char *text)
{
    struct message message = {kind, from, strdup(text)};
    dispatcher_message(bench->dispatcher, &message);
    bench_carry_out(bench);
    free(message.text);
}

void arrive(struct bench *bench, int from, enum message_kind kind, const char *text)
{
    arrive_with_others(bench, from, kind, text);
    dispatcher_commit(bench->dispatcher);
    bench_carry_out(bench);
}

void device_arrives(struct bench *bench, int rank)
{
    json_t *object = device_encode(&bench->devices[rank]);
    char *text = json_dumps(object, JSON_COMPACT);
    arrive(bench, rank, MESSAGE_DEVICE, text);
    free(text);
    json_decref(object);
}

void all_devices_arrive(struct bench *bench)
{
    for (int rank = 0; rank < bench->settings.ranks; ++rank)
        device_arrives(bench, rank);
}

bool work_taken(struct bench *bench, int rank, struct request *request)
{
    char *line = collected_take(&bench->sent, rank, MESSAGE_MEASURE);
    if (!line)
        return false;
    assert_ok(request_decode(line, request, &failure));
    assert_int_equal(request->op, REQUEST_MEASURE);
    free(line);
    return true;
}

bool count_ordered(struct bench *bench, int rank)
{
    char *message = collected_take(&bench->sent, rank, MESSAGE_COUNT);
    free(message);
    return message;
}

char *record_text(const char *configuration, enum record_status status)
{
    struct config config;
    struct record record;
    assert_ok(config_parse(configuration, &config, &failure));
    record_init(&record);
    record_set_config(&record, &config);
    snprintf(record.label, sizeof record.label, "what a worker says");
    record.status = status;
    record.time_median = status == RECORD_MEASURED ? 0.1 : NAN;
    json_t *object = record_encode(&record);
    json_object_set_new(object, "mood", json_integer(7));
    char *json = json_dumps(object, JSON_COMPACT), *text;
    json_decref(object);
    assert_true(asprintf(&text, "1 %s", json) > 0);
    free(json);
    return text;
}

void record_arrives(struct bench *bench, int rank, const char *configuration)
{
    char *text = record_text(configuration, RECORD_MEASURED);
    arrive(bench, rank, MESSAGE_RECORD, text);
    free(text);
}
