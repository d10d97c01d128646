#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stage.h"

#include <stdio.h>
#include <unistd.h>

#include "model/protocol.h"
#include "ranks/earlier_rows.h"

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

void stage_open(struct stage *stage, struct coordinator_settings settings, enum journal_mode mode)
{
    struct error error;
    struct post post = collected_post(&stage->sent);
    settings.manifest = stage->manifest;
    settings.plan = stage->plan;
    settings.earlier = stage->earlier;
    settings.devices = stage->devices;
    settings.ranks = stage->ranks;
    assert_ok(journal_open(stage->path, mode, &stage->journal, &error), &error);
    stage->coordinator = coordinator_create(&settings, stage->journal, &post, &stage->log);
    assert_non_null(stage->coordinator);
}

void stage_begin(struct stage *stage, enum journal_mode mode)
{
    struct choices_file file;
    struct error error;
    assert_ok(choices_open(NULL, true, &stage->choices, &file, &error), &error);
    stage_open(stage, (struct coordinator_settings){.choices = stage->choices}, mode);
}

void stage_start_with(struct stage *stage, int ranks, const char *manifest,
                      struct coordinator_settings settings)
{
    *stage = stage_make(ranks, manifest);
    stage_open(stage, settings, JOURNAL_CREATE);
    coordinator_watch(stage->coordinator, STAGE_BEGIN);
}

struct stage stage_make(int ranks, const char *manifest)
{
    struct stage stage = {.ranks = ranks};
    struct error error;
    assert_ok(manifest_parse("test.ini", manifest, strlen(manifest), &stage.manifest, &error),
              &error);
    assert_ok(plan_create(stage.manifest, &stage.plan, &error), &error);
    stage.log = log_create(fopen("/dev/null", "w"), LOG_DEBUG, 0);
    for (int rank = 0; rank < ranks; ++rank)
        stage.devices[rank] = device_of(rank);
    strcpy(stage.path, "/tmp/roofsweep-coordinator-XXXXXX");
    close(mkstemp(stage.path));
    unlink(stage.path);
    return stage;
}

void stage_start(struct stage *stage, int ranks, const char *manifest)
{
    *stage = stage_make(ranks, manifest);
    stage_begin(stage, JOURNAL_CREATE);
}

/* What the journal holds. */
struct results *stage_rows(struct stage *stage)
{
    struct results *results;
    struct error error;
    bool torn;
    assert_ok(journal_read(stage->path, &results, &torn, &error), &error);
    return results;
}

void stage_clear(struct stage *stage)
{
    coordinator_destroy(stage->coordinator);
    choices_close(stage->choices);
    journal_close(stage->journal);
    results_destroy(stage->earlier);
    collected_clear(&stage->sent);
    plan_destroy(stage->plan);
    manifest_destroy(stage->manifest);
    fclose(stage->log.stream);
    unlink(stage->path);
}

void arrive(struct stage *stage, int from, enum letter_kind kind, const char *text)
{
    struct letter letter = {kind, from, strdup(text)};
    coordinator_handle(stage->coordinator, &letter);
    coordinator_settle(stage->coordinator);
    free(letter.text);
}

void device_arrives(struct stage *stage, int rank)
{
    json_t *object = device_encode(&stage->devices[rank]);
    char *text = json_dumps(object, JSON_COMPACT);
    arrive(stage, rank, LETTER_DEVICE, text);
    free(text);
    json_decref(object);
}

void all_devices_arrive(struct stage *stage)
{
    for (int rank = 0; rank < stage->ranks; ++rank)
        device_arrives(stage, rank);
}

/* What a rank was asked; false: nothing. */
static bool request_taken(struct stage *stage, int rank, struct request *request)
{
    struct error error;
    char *line = collected_take(&stage->sent, rank, LETTER_WORK);
    if (!line)
        return false;
    assert_ok(request_decode(line, request, &error), &error);
    assert_int_equal(request->op, REQUEST_MEASURE);
    free(line);
    return true;
}

/* The work that a rank was given; false: none. */
bool work_of(struct stage *stage, int rank, struct config *config)
{
    struct request request;
    if (!request_taken(stage, rank, &request))
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
bool rank_measures(struct stage *stage, int rank, enum record_status status)
{
    struct config config;
    if (!work_of(stage, rank, &config))
        return false;
    char *text = record_text(&config, rank, status);
    arrive(stage, rank, LETTER_RECORD, text);
    free(text);
    return true;
}

/* Ranks from `first` on measure in turns as long as there is work. */
size_t measure_all(struct stage *stage, int first)
{
    size_t count = 0;
    for (bool worked = true; worked;) {
        worked = false;
        for (int rank = first; rank < stage->ranks; ++rank)
            if (rank_measures(stage, rank, RECORD_MEASURED)) {
                worked = true;
                ++count;
            }
    }
    return count;
}

/* Everyone is told to stop, once, and says its last word. */
enum status stage_end(struct stage *stage, struct error *error)
{
    for (int rank = 0; rank < stage->ranks; ++rank) {
        char *stop = collected_take(&stage->sent, rank, LETTER_STOP);
        assert_non_null(stop);
        free(stop);
        assert_null(collected_take(&stage->sent, rank, LETTER_STOP));
        assert_false(coordinator_finished(stage->coordinator));
        arrive(stage, rank, LETTER_BYE, "");
    }
    assert_true(coordinator_finished(stage->coordinator));
    return coordinator_status(stage->coordinator, error);
}

/* As rank_measures, in so many seconds. */
struct config measured_in(struct stage *stage, int rank, double seconds)
{
    struct config config;
    assert_true(work_of(stage, rank, &config));
    char *text = record_text(&config, rank, RECORD_MEASURED);
    json_t *object = json_loads(text, 0, NULL);
    free(text);
    record_patch(object, "wall_time", json_real(seconds));
    text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    arrive(stage, rank, LETTER_RECORD, text);
    free(text);
    return config;
}

/* ---- rows that are counted together ---- */

void stage_begin_counting(struct stage *stage, int together)
{
    const struct coordinator_settings settings = {.roofs_patience = 100,
                                                  .work_patience = 50,
                                                  .count_patience = STAGE_COUNT_PATIENCE,
                                                  .stop_patience = 10};
    for (int rank = 0; rank < stage->ranks; ++rank) {
        stage->devices[rank].count_together = together;
        outcome_set(&stage->devices[rank].counters, COUNTED_YES, NULL);
    }
    stage_open(stage, settings, JOURNAL_CREATE);
    coordinator_watch(stage->coordinator, STAGE_BEGIN);
    all_devices_arrive(stage);
}

bool work_that_waits(struct stage *stage, int rank, bool later, char text[WORKLOAD_TEXT])
{
    struct request request;
    if (!request_taken(stage, rank, &request))
        return false;
    assert_int_equal(request.count_later, later);
    config_format(&request.config, text);
    return true;
}

void rank_times(struct stage *stage, int rank, char text[WORKLOAD_TEXT])
{
    assert_true(work_that_waits(stage, rank, true, text));
    arrive(stage, rank, LETTER_TIMED, text);
}

bool is_told_to_count(struct stage *stage, int rank)
{
    char *letter = collected_take(&stage->sent, rank, LETTER_COUNT);
    free(letter);
    return letter;
}

void record_arrives(struct stage *stage, int rank, const char *configuration)
{
    struct config config;
    struct error error;
    assert_ok(config_parse(configuration, &config, &error), &error);
    char *text = record_text(&config, rank, RECORD_MEASURED);
    arrive(stage, rank, LETTER_RECORD, text);
    free(text);
}

void assert_each_once(struct stage *stage, size_t count)
{
    struct error error;
    assert_int_equal(stage_end(stage, &error), STATUS_OK);
    struct results *rows = stage_rows(stage);
    assert_int_equal(rows->row_count, count);
    assert_int_equal(earlier_rows_missing(stage->plan, rows), 0);
    results_destroy(rows);
    stage_clear(stage);
}
