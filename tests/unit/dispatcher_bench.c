#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dispatcher_bench.h"

#include <stdio.h>
#include <unistd.h>

#include "model/protocol.h"
#include "ranks/resume.h"

void assert_ok(enum status status, const struct error *error)
{
    if (status != STATUS_OK)
        fail_msg("%s", error->text);
}

static struct device device_of(int rank)
{
    struct device device;
    device_init(&device);
    snprintf(device.key, sizeof device.key, "session/%d", rank);
    snprintf(device.uuid, sizeof device.uuid, "uuid-%d", rank);
    strcpy(device.hostname, "node1");
    return device;
}

void bench_open(struct bench *bench, struct dispatcher_settings settings, enum journal_mode mode)
{
    struct error error;
    settings.manifest = bench->manifest;
    settings.plan = bench->plan;
    settings.earlier = bench->earlier;
    settings.devices = bench->devices;
    settings.ranks = bench->ranks;
    assert_ok(journal_open(bench->path, mode, &bench->journal, &error), &error);
    bench->dispatcher = dispatcher_create(&settings, &bench->log);
    assert_non_null(bench->dispatcher);
}

void bench_carry_out(struct bench *bench)
{
    struct dispatcher_action action;
    struct error error;
    while (dispatcher_next(bench->dispatcher, &action))
        switch (action.kind) {
        case ACTION_STORE_DEVICE:
            assert_ok(journal_append(bench->journal, "device", json_incref(action.json), &error),
                      &error);
            break;
        case ACTION_STORE_RECORD:
            if (bench->choices)
                assert_ok(choices_learn(bench->choices, action.record,
                                        bench->plan->items[action.item].hash,
                                        &bench->devices[action.rank], &error),
                          &error);
            assert_ok(journal_append(bench->journal, "record", json_incref(action.json), &error),
                      &error);
            break;
        case ACTION_SYNC:
            assert_ok(journal_sync(bench->journal, &error), &error);
            break;
        case ACTION_SEND:
            collect(&bench->sent, action.rank, action.message, action.text, &error);
            break;
        case ACTION_PROGRESS:
            bench->left = action.left;
            break;
        }
}

void bench_time(struct bench *bench, double now)
{
    dispatcher_time(bench->dispatcher, now);
    bench_carry_out(bench);
}

void bench_interrupt(struct bench *bench)
{
    dispatcher_interrupt(bench->dispatcher);
    bench_carry_out(bench);
}

void bench_begin(struct bench *bench, enum journal_mode mode)
{
    struct choices_file file;
    struct error error;
    assert_ok(choices_open(NULL, true, &bench->choices, &file, &error), &error);
    bench_open(bench, (struct dispatcher_settings){.choices = bench->choices}, mode);
}

void bench_start_with(struct bench *bench, int ranks, const char *manifest,
                      struct dispatcher_settings settings)
{
    *bench = bench_make(ranks, manifest);
    bench_open(bench, settings, JOURNAL_CREATE);
    bench_time(bench, BENCH_BEGIN);
}

struct bench bench_make(int ranks, const char *manifest)
{
    struct bench bench = {.ranks = ranks};
    struct error error;
    assert_ok(manifest_parse("test.ini", manifest, strlen(manifest), &bench.manifest, &error),
              &error);
    assert_ok(plan_create(bench.manifest, &bench.plan, &error), &error);
    bench.log = log_create(fopen("/dev/null", "w"), LOG_DEBUG, 0);
    for (int rank = 0; rank < ranks; ++rank)
        bench.devices[rank] = device_of(rank);
    strcpy(bench.path, "/tmp/roofsweep-dispatcher-XXXXXX");
    close(mkstemp(bench.path));
    unlink(bench.path);
    return bench;
}

void bench_start(struct bench *bench, int ranks, const char *manifest)
{
    *bench = bench_make(ranks, manifest);
    bench_begin(bench, JOURNAL_CREATE);
}

/* What the journal holds. */
struct results *bench_rows(struct bench *bench)
{
    struct results *results;
    struct error error;
    bool torn;
    assert_ok(journal_read(bench->path, &results, &torn, &error), &error);
    return results;
}

void bench_clear(struct bench *bench)
{
    dispatcher_destroy(bench->dispatcher);
    choices_close(bench->choices);
    journal_close(bench->journal);
    results_destroy(bench->earlier);
    collected_clear(&bench->sent);
    plan_destroy(bench->plan);
    manifest_destroy(bench->manifest);
    fclose(bench->log.stream);
    unlink(bench->path);
}

void arrive(struct bench *bench, int from, enum message_kind kind, const char *text)
{
    struct message message = {kind, from, strdup(text)};
    dispatcher_message(bench->dispatcher, &message);
    bench_carry_out(bench);
    dispatcher_settle(bench->dispatcher);
    bench_carry_out(bench);
    free(message.text);
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
    for (int rank = 0; rank < bench->ranks; ++rank)
        device_arrives(bench, rank);
}

/* What a rank was asked; false: nothing. */
static bool request_taken(struct bench *bench, int rank, struct request *request)
{
    struct error error;
    char *line = collected_take(&bench->sent, rank, MESSAGE_MEASURE);
    if (!line)
        return false;
    assert_ok(request_decode(line, request, &error), &error);
    assert_int_equal(request->op, REQUEST_MEASURE);
    free(line);
    return true;
}

/* The work that a rank was given; false: none. */
bool work_of(struct bench *bench, int rank, struct config *config)
{
    struct request request;
    if (!request_taken(bench, rank, &request))
        return false;
    *config = request.config;
    return true;
}

char *record_text(const struct config *config, int rank, enum record_status status)
{
    struct record record;
    record_init(&record);
    record_set_config(&record, config);
    strcpy(record.config_hash, "what a worker says");
    snprintf(record.device_key, sizeof record.device_key, "session/%d", rank);
    record.status = status;
    json_t *object = record_encode(&record);
    record_patch(object, "mood", json_integer(7));
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return text;
}

/* The rank measures what it was given. False: it had no work. */
bool rank_measures(struct bench *bench, int rank, enum record_status status)
{
    struct config config;
    if (!work_of(bench, rank, &config))
        return false;
    char *text = record_text(&config, rank, status);
    arrive(bench, rank, MESSAGE_RECORD, text);
    free(text);
    return true;
}

/* Ranks from `first` on measure in turns as long as there is work. */
size_t measure_all(struct bench *bench, int first)
{
    size_t count = 0;
    for (bool worked = true; worked;) {
        worked = false;
        for (int rank = first; rank < bench->ranks; ++rank)
            if (rank_measures(bench, rank, RECORD_MEASURED)) {
                worked = true;
                ++count;
            }
    }
    return count;
}

/* Everyone is told to stop, once, and says its last word. */
enum status bench_end(struct bench *bench, struct error *error)
{
    for (int rank = 0; rank < bench->ranks; ++rank) {
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

/* ---- rows that are counted together ---- */

void bench_begin_counting(struct bench *bench, int together)
{
    const struct dispatcher_settings settings = {.roofs_timeout = 100,
                                                 .work_timeout = 50,
                                                 .count_timeout = BENCH_COUNT_TIMEOUT,
                                                 .stop_timeout = 10};
    for (int rank = 0; rank < bench->ranks; ++rank) {
        bench->devices[rank].count_together = together;
        outcome_set(&bench->devices[rank].counters, COUNTED_YES, NULL);
    }
    bench_open(bench, settings, JOURNAL_CREATE);
    bench_time(bench, BENCH_BEGIN);
    all_devices_arrive(bench);
}

bool work_that_waits(struct bench *bench, int rank, bool later, char text[WORKLOAD_TEXT])
{
    struct request request;
    if (!request_taken(bench, rank, &request))
        return false;
    assert_int_equal(request.count_later, later);
    config_format(&request.config, text);
    return true;
}

void rank_times(struct bench *bench, int rank, char text[WORKLOAD_TEXT])
{
    assert_true(work_that_waits(bench, rank, true, text));
    arrive(bench, rank, MESSAGE_TIMED, text);
}

bool is_told_to_count(struct bench *bench, int rank)
{
    char *message = collected_take(&bench->sent, rank, MESSAGE_COUNT);
    free(message);
    return message;
}

void record_arrives(struct bench *bench, int rank, const char *configuration)
{
    struct config config;
    struct error error;
    assert_ok(config_parse(configuration, &config, &error), &error);
    char *text = record_text(&config, rank, RECORD_MEASURED);
    arrive(bench, rank, MESSAGE_RECORD, text);
    free(text);
}

void assert_each_once(struct bench *bench, size_t count)
{
    struct error error;
    assert_int_equal(bench_end(bench, &error), STATUS_OK);
    struct results *rows = bench_rows(bench);
    assert_int_equal(rows->row_count, count);
    assert_int_equal(resume_missing(bench->plan, rows), 0);
    results_destroy(rows);
    bench_clear(bench);
}
