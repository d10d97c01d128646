/* Rank 0's half of a sweep, driven by letters alone: no MPI, no worker, a real plan and a real journal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include "collected_post.h"
#include "model/protocol.h"
#include "ranks/coordinator.h"
#include "ranks/earlier_rows.h"

enum { RANKS = 3 };

/* A sweep as rank 0 sees it. */
struct stage {
    struct manifest *manifest;
    struct plan *plan;
    struct device devices[RANKS];
    struct results *earlier;
    struct log log;
    char path[64];
    struct journal *journal;
    struct collected sent;
    struct choices *choices;
    struct coordinator *coordinator;
    int ranks;
};

static void assert_ok(enum status status, const struct error *error)
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

static void begin(struct stage *stage, enum journal_mode mode)
{
    struct choices_file file;
    struct error error;
    struct post post = collected_post(&stage->sent);
    struct coordinator_settings settings = {
        .manifest = stage->manifest,
        .plan = stage->plan,
        .earlier = stage->earlier,
        .devices = stage->devices,
        .ranks = stage->ranks,
    };
    assert_ok(choices_open(NULL, true, &stage->choices, &file, &error), &error);
    settings.choices = stage->choices;
    assert_ok(journal_open(stage->path, mode, &stage->journal, &error), &error);
    stage->coordinator = coordinator_create(&settings, stage->journal, &post, &stage->log);
    assert_non_null(stage->coordinator);
}

static struct stage stage_make(int ranks, const char *manifest)
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

static void stage_start(struct stage *stage, int ranks, const char *manifest)
{
    *stage = stage_make(ranks, manifest);
    begin(stage, JOURNAL_CREATE);
}

/* What the journal holds. */
static struct results *stage_rows(struct stage *stage)
{
    struct results *results;
    struct error error;
    bool torn;
    assert_ok(journal_read(stage->path, &results, &torn, &error), &error);
    return results;
}

static void stage_clear(struct stage *stage)
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

static void arrive(struct stage *stage, int from, enum letter_kind kind, const char *text)
{
    struct letter letter = {kind, from, strdup(text)};
    coordinator_handle(stage->coordinator, &letter);
    coordinator_settle(stage->coordinator);
    free(letter.text);
}

static void device_arrives(struct stage *stage, int rank)
{
    json_t *object = device_encode(&stage->devices[rank]);
    char *text = json_dumps(object, JSON_COMPACT);
    arrive(stage, rank, LETTER_DEVICE, text);
    free(text);
    json_decref(object);
}

static void all_devices_arrive(struct stage *stage)
{
    for (int rank = 0; rank < stage->ranks; ++rank)
        device_arrives(stage, rank);
}

/* The work that a rank was given; false: none. */
static bool work_of(struct stage *stage, int rank, struct config *config)
{
    struct request request;
    struct error error;
    char *line = collected_take(&stage->sent, rank, LETTER_WORK);
    if (!line)
        return false;
    assert_ok(request_decode(line, &request, &error), &error);
    assert_int_equal(request.op, REQUEST_MEASURE);
    free(line);
    *config = request.config;
    return true;
}

static char *record_text(const struct config *config, int rank, enum record_status status)
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
static bool rank_measures(struct stage *stage, int rank, enum record_status status)
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
static size_t measure_all(struct stage *stage, int first)
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
static enum status end(struct stage *stage, struct error *error)
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
static struct config measured_in(struct stage *stage, int rank, double seconds)
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

static const char four[] = "[conv2d grid]\nbatch = 1, 2, 4, 8\n";

static void nothing_is_handed_out_before_all_roofs(void **state)
{
    (void)state;
    struct stage stage;
    struct config config;
    stage_start(&stage, 2, four);
    device_arrives(&stage, 0);
    assert_false(work_of(&stage, 0, &config));
    device_arrives(&stage, 1);
    assert_true(work_of(&stage, 0, &config));
    assert_true(work_of(&stage, 1, &config));
    stage_clear(&stage);
}

static void each_configuration_is_measured_once(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start(&stage, 3, four);
    all_devices_arrive(&stage);
    assert_int_equal(measure_all(&stage, 0), 4);
    assert_int_equal(end(&stage, &error), STATUS_OK);
    struct results *rows = stage_rows(&stage);
    assert_int_equal(rows->device_count, 3);
    assert_int_equal(rows->row_count, 4);
    assert_int_equal(earlier_rows_missing(stage.plan, rows), 0);
    results_destroy(rows);
    stage_clear(&stage);
}

/* Records of several ranks that arrive at the same moment are on disk before any of them gets more work. */
static void work_comes_after_the_sync(void **state)
{
    (void)state;
    struct stage stage;
    struct config config;
    stage_start(&stage, 3, "[conv2d grid]\nbatch = 1, 2, 4, 8, 16, 32\n");
    all_devices_arrive(&stage);
    for (int rank = 0; rank < 3; ++rank) {
        assert_true(work_of(&stage, rank, &config));
        char *text = record_text(&config, rank, RECORD_MEASURED);
        const struct letter letter = {LETTER_RECORD, rank, text};
        coordinator_handle(stage.coordinator, &letter);
        free(text);
    }
    for (int rank = 0; rank < 3; ++rank)
        assert_false(work_of(&stage, rank, &config));
    coordinator_settle(stage.coordinator);
    struct results *rows = stage_rows(&stage);
    assert_int_equal(rows->row_count, 3);
    results_destroy(rows);
    for (int rank = 0; rank < 3; ++rank)
        assert_true(work_of(&stage, rank, &config));
    coordinator_settle(stage.coordinator); /* nothing new: nothing twice */
    for (int rank = 0; rank < 3; ++rank)
        assert_false(work_of(&stage, rank, &config));
    stage_clear(&stage);
}

/* The journal has the record as it came, but is known by the plan's hash and label. */
static void a_record_is_journaled_as_it_came(void **state)
{
    (void)state;
    struct stage stage;
    char line[16384];
    bool found = false;
    stage_start(&stage, 1, four);
    all_devices_arrive(&stage);
    assert_true(rank_measures(&stage, 0, RECORD_MEASURED));
    FILE *file = fopen(stage.path, "r");
    while (fgets(line, sizeof line, file))
        if (strstr(line, "\"kind\":\"record\"")) {
            found = true;
            assert_non_null(strstr(line, "\"mood\":7"));
            assert_non_null(strstr(line, "\"label\":\"grid\""));
            assert_null(strstr(line, "what a worker says"));
        }
    fclose(file);
    assert_true(found);
    stage_clear(&stage);
}

static void nonsense_ends_the_sweep(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "[]", "{\"time_median\":1}", "{\"status\":\"merry\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        struct stage stage;
        struct error error;
        stage_start(&stage, 2, four);
        all_devices_arrive(&stage);
        arrive(&stage, 1, LETTER_RECORD, texts[i]);
        assert_int_equal(end(&stage, &error), STATUS_SYSTEM);
        assert_non_null(strstr(error.text, "no record"));
        struct results *rows = stage_rows(&stage);
        assert_int_equal(rows->row_count, 0);
        results_destroy(rows);
        stage_clear(&stage);
    }
}

static void a_record_out_of_turn_is_no_row(void **state)
{
    (void)state;
    struct stage stage;
    struct config config;
    struct error error;
    stage_start(&stage, 2, "[conv2d]\nbatch = 1\n");
    all_devices_arrive(&stage);
    assert_true(work_of(&stage, 0, &config)); /* the only one: rank 1 idles */
    char *text = record_text(&config, 1, RECORD_MEASURED);
    arrive(&stage, 1, LETTER_RECORD, text);
    free(text);
    assert_int_equal(end(&stage, &error), STATUS_SYSTEM);
    struct results *rows = stage_rows(&stage);
    assert_int_equal(rows->row_count, 0);
    results_destroy(rows);
    stage_clear(&stage);
}

static void a_device_that_is_no_json_ends_the_sweep(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start(&stage, 2, four);
    arrive(&stage, 1, LETTER_DEVICE, "");
    assert_int_equal(end(&stage, &error), STATUS_SYSTEM);
    stage_clear(&stage);
}

static void what_a_lost_rank_measured_goes_to_another(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start(&stage, 2, four);
    all_devices_arrive(&stage);
    arrive(&stage, 0, LETTER_LOST, "uuid-0 on node1: fell off the bus");
    assert_int_equal(measure_all(&stage, 1), 4);
    assert_int_equal(end(&stage, &error), STATUS_OK);
    stage_clear(&stage);
}

static void a_rank_lost_over_its_roofs_does_not_hold_up_others(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start(&stage, 2, four);
    device_arrives(&stage, 1);
    arrive(&stage, 0, LETTER_LOST, "gone");
    assert_int_equal(measure_all(&stage, 1), 4);
    assert_int_equal(end(&stage, &error), STATUS_OK);
    stage_clear(&stage);
}

static void a_second_loss_is_a_failed_row(void **state)
{
    (void)state;
    struct stage stage;
    struct config deadly, second;
    struct error error;
    char text[WORKLOAD_TEXT];
    stage_start(&stage, 3, "[conv2d]\nbatch = 1\n");
    all_devices_arrive(&stage);
    assert_true(work_of(&stage, 0, &deadly));
    arrive(&stage, 0, LETTER_LOST, "first");
    bool one = work_of(&stage, 1, &second);
    assert_true(one || work_of(&stage, 2, &second));
    arrive(&stage, one ? 1 : 2, LETTER_LOST, "second");
    assert_false(work_of(&stage, one ? 2 : 1, &second));
    assert_int_equal(end(&stage, &error), STATUS_OK); /* all rows are there, one has failed */
    struct results *rows = stage_rows(&stage);
    assert_int_equal(rows->row_count, 1);
    assert_int_equal(rows->rows[0].status, RECORD_FAILED);
    assert_string_equal(rows->rows[0].error,
                        "2 devices were lost while measuring it, the last: second");
    config_format(&deadly, text);
    assert_string_equal(rows->rows[0].configuration, text);
    results_destroy(rows);
    stage_clear(&stage);
}

static void no_rank_left_is_the_end(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start(&stage, 2, four);
    all_devices_arrive(&stage);
    arrive(&stage, 0, LETTER_LOST, "first");
    arrive(&stage, 1, LETTER_LOST, "second");
    assert_int_equal(end(&stage, &error), STATUS_DEVICE);
    assert_non_null(strstr(error.text, "no rank is left"));
    stage_clear(&stage);
}

static const char replicated[] = "[sweep]\ndistribute = replicate\n[conv2d]\nbatch = 1, 2, 4, 8\n";

static void replicate_measures_everything_everywhere(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start(&stage, 2, replicated);
    all_devices_arrive(&stage);
    assert_int_equal(measure_all(&stage, 0), 8);
    assert_int_equal(end(&stage, &error), STATUS_OK);
    stage_clear(&stage);
}

static void replicate_misses_what_a_lost_device_had(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start(&stage, 2, replicated);
    all_devices_arrive(&stage);
    assert_true(rank_measures(&stage, 0, RECORD_MEASURED));
    arrive(&stage, 0, LETTER_LOST, "gone");
    assert_int_equal(measure_all(&stage, 1), 4);
    assert_int_equal(end(&stage, &error), STATUS_DEVICE);
    assert_non_null(strstr(error.text, "--resume"));

    /* With what was measured, a second job hands out no more than the rest. */
    struct stage again = stage_make(2, replicated);
    strcpy(again.path, stage.path);
    again.earlier = stage_rows(&stage);
    journal_close(stage.journal);
    stage.journal = NULL;
    begin(&again, JOURNAL_RESUME);
    all_devices_arrive(&again);
    assert_false(rank_measures(&again, 1, RECORD_MEASURED));
    assert_int_equal(measure_all(&again, 0), 3);
    assert_int_equal(end(&again, &error), STATUS_OK);
    stage_clear(&again);
    stage_clear(&stage);
}

/* An older journal has one UUID for all ranks on the same cores: its rows are the first rank's. */
static void a_shared_uuid_is_the_first_ranks(void **state)
{
    (void)state;
    struct stage stage, again = stage_make(2, replicated);
    struct error error;
    stage = stage_make(2, replicated);
    strcpy(stage.devices[1].uuid, stage.devices[0].uuid);
    begin(&stage, JOURNAL_CREATE);
    all_devices_arrive(&stage);
    assert_int_equal(measure_all(&stage, 1), 4); /* rank 0 was killed before its first row */
    strcpy(again.path, stage.path);
    strcpy(again.devices[1].uuid, "uuid-0#2");
    again.earlier = stage_rows(&stage);
    journal_close(stage.journal);
    stage.journal = NULL;
    begin(&again, JOURNAL_RESUME);
    all_devices_arrive(&again);
    assert_int_equal(measure_all(&again, 0), 4);
    assert_int_equal(end(&again, &error), STATUS_OK);
    stage_clear(&again);
    stage_clear(&stage);
}

static void what_was_measured_is_not_handed_out_again(void **state)
{
    (void)state;
    struct stage stage, again = stage_make(2, four);
    struct error error;
    stage_start(&stage, 2, four);
    all_devices_arrive(&stage);
    assert_true(rank_measures(&stage, 1, RECORD_MEASURED));
    again.earlier = stage_rows(&stage);
    assert_int_equal(earlier_rows_missing(stage.plan, again.earlier), 3);
    begin(&again, JOURNAL_CREATE);
    all_devices_arrive(&again);
    assert_int_equal(measure_all(&again, 0), 3);
    assert_int_equal(end(&again, &error), STATUS_OK);
    stage_clear(&again);
    stage_clear(&stage);
}

enum { ROOFS_PATIENCE = 100, WORK_PATIENCE = 50, STOP_PATIENCE = 10 };

/* With a coordinator that does not wait for ever. */
static void stage_start_impatient(struct stage *stage, int ranks, const char *manifest)
{
    struct error error;
    *stage = stage_make(ranks, manifest);
    struct post post = collected_post(&stage->sent);
    struct coordinator_settings settings = {
        .manifest = stage->manifest,
        .plan = stage->plan,
        .devices = stage->devices,
        .ranks = ranks,
        .roofs_patience = ROOFS_PATIENCE,
        .work_patience = WORK_PATIENCE,
        .stop_patience = STOP_PATIENCE,
    };
    assert_ok(journal_open(stage->path, JOURNAL_CREATE, &stage->journal, &error), &error);
    stage->coordinator = coordinator_create(&settings, stage->journal, &post, &stage->log);
    assert_non_null(stage->coordinator);
    coordinator_watch(stage->coordinator, 1000);
}

static void assert_rows(struct stage *stage, size_t count)
{
    struct results *rows = stage_rows(stage);
    assert_int_equal(rows->row_count, count);
    assert_int_equal(earlier_rows_missing(stage->plan, rows), stage->plan->count - count);
    results_destroy(rows);
}

/* Another one measures what it had. Its own record comes before that one, after it, or never. */
static void a_silent_rank_holds_up_nobody(void **state)
{
    (void)state;
    for (int late = 0; late < 3; ++late) {
        struct stage stage;
        struct config held, again;
        struct error error;
        char absent[200];
        stage_start_impatient(&stage, 2, "[conv2d grid]\nbatch = 1, 2\n");
        all_devices_arrive(&stage);
        assert_true(work_of(&stage, 0, &held));
        char *text = record_text(&held, 0, RECORD_MEASURED);
        coordinator_watch(stage.coordinator, 1000 + WORK_PATIENCE - 1);
        assert_true(rank_measures(&stage, 1, RECORD_MEASURED));
        assert_false(work_of(&stage, 1, &again)); /* it still has time */
        coordinator_watch(stage.coordinator, 1000 + WORK_PATIENCE + 1);
        if (late == 0)
            arrive(&stage, 0, LETTER_RECORD, text);
        assert_true(rank_measures(&stage, 1, RECORD_MEASURED));
        if (late == 1)
            arrive(&stage, 0, LETTER_RECORD, text);
        free(text);
        assert_rows(&stage, 2);
        arrive(&stage, 1, LETTER_BYE, "");
        assert_true(coordinator_absent(stage.coordinator, absent, sizeof absent));
        assert_string_equal(absent, "rank 0 on node1");
        assert_false(coordinator_finished(stage.coordinator));
        if (late < 2)
            arrive(&stage, 0, LETTER_BYE, "");
        else
            coordinator_watch(stage.coordinator, 1000 + WORK_PATIENCE + STOP_PATIENCE + 2);
        assert_true(coordinator_finished(stage.coordinator));
        assert_int_equal(coordinator_absent(stage.coordinator, absent, sizeof absent), late == 2);
        assert_int_equal(coordinator_status(stage.coordinator, &error), STATUS_OK);
        stage_clear(&stage);
    }
}

static void a_silent_rank_that_writes_again_gets_work(void **state)
{
    (void)state;
    struct stage stage;
    struct config held;
    stage_start_impatient(&stage, 2, four);
    all_devices_arrive(&stage);
    assert_true(work_of(&stage, 0, &held));
    coordinator_watch(stage.coordinator, 1010);
    assert_true(rank_measures(&stage, 1, RECORD_MEASURED));
    char *text = record_text(&held, 0, RECORD_MEASURED);
    coordinator_watch(stage.coordinator, 1001 + WORK_PATIENCE);
    arrive(&stage, 0, LETTER_RECORD, text);
    free(text);
    assert_true(work_of(&stage, 0, &held));
    stage_clear(&stage);
}

/* Silent over its roofs: the others begin without it, and it joins them when it is ready. */
static void a_rank_silent_over_its_roofs_joins_late(void **state)
{
    (void)state;
    struct stage stage;
    struct config config;
    stage_start_impatient(&stage, 2, four);
    device_arrives(&stage, 1);
    coordinator_watch(stage.coordinator, 999 + ROOFS_PATIENCE);
    assert_false(work_of(&stage, 1, &config));
    coordinator_watch(stage.coordinator, 1001 + ROOFS_PATIENCE);
    assert_true(work_of(&stage, 1, &config));
    device_arrives(&stage, 0);
    assert_true(work_of(&stage, 0, &config));
    stage_clear(&stage);
}

static void all_silent_is_the_end(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start_impatient(&stage, 2, four);
    all_devices_arrive(&stage);
    coordinator_watch(stage.coordinator, 1001 + WORK_PATIENCE);
    assert_false(coordinator_finished(stage.coordinator));
    coordinator_watch(stage.coordinator, 1002 + WORK_PATIENCE + STOP_PATIENCE);
    assert_true(coordinator_finished(stage.coordinator));
    assert_int_equal(coordinator_status(stage.coordinator, &error), STATUS_DEVICE);
    stage_clear(&stage);
}

/* After a signal, whoever does not answer is waited for no longer than that. */
static void an_interrupt_does_not_wait_for_the_silent(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    char absent[200];
    stage_start_impatient(&stage, 3, four);
    all_devices_arrive(&stage);
    coordinator_watch(stage.coordinator, 1005);
    coordinator_interrupt(stage.coordinator);
    arrive(&stage, 1, LETTER_BYE, "");
    coordinator_watch(stage.coordinator, 1004 + STOP_PATIENCE);
    assert_false(coordinator_finished(stage.coordinator));
    coordinator_watch(stage.coordinator, 1006 + STOP_PATIENCE);
    assert_true(coordinator_finished(stage.coordinator));
    assert_true(coordinator_absent(stage.coordinator, absent, sizeof absent));
    assert_string_equal(absent, "rank 0 on node1, rank 2 on node1");
    assert_int_equal(coordinator_status(stage.coordinator, &error), STATUS_INTERRUPTED);
    stage_clear(&stage);
}

/* With a limit of 100 s that began at 1000 s; 10 s of it are for the file. */
static void stage_start_limited(struct stage *stage, int ranks, const char *manifest)
{
    static const struct time_limit limit = {1100, 100, "--time-limit 100 s"};
    struct error error;
    *stage = stage_make(ranks, manifest);
    struct post post = collected_post(&stage->sent);
    struct coordinator_settings settings = {
        .manifest = stage->manifest,
        .plan = stage->plan,
        .devices = stage->devices,
        .ranks = ranks,
        .limit = &limit,
    };
    assert_ok(journal_open(stage->path, JOURNAL_CREATE, &stage->journal, &error), &error);
    stage->coordinator = coordinator_create(&settings, stage->journal, &post, &stage->log);
    assert_non_null(stage->coordinator);
    coordinator_watch(stage->coordinator, 1000);
}

/* The rank is done with what it was given, which took until then. */
static bool rank_measures_until(struct stage *stage, int rank, double moment)
{
    struct config config;
    if (!work_of(stage, rank, &config))
        return false;
    char *text = record_text(&config, rank, RECORD_MEASURED);
    coordinator_watch(stage->coordinator, moment);
    arrive(stage, rank, LETTER_RECORD, text);
    free(text);
    return true;
}

/* 20 s each, and so 30 s are expected: with 45 s left one is begun, with 25 s none. */
static void nothing_is_begun_that_cannot_end(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start_limited(&stage, 1, "[conv2d]\nfilters = 64, 65, 66, 67, 68, 69\n");
    coordinator_watch(stage.coordinator, 1005);
    all_devices_arrive(&stage);
    for (int i = 1; i <= 3; ++i)
        assert_true(rank_measures_until(&stage, 0, 1005 + 20 * i));
    assert_int_equal(end(&stage, &error), STATUS_INTERRUPTED);
    assert_non_null(strstr(error.text, "3 of 6 configurations are left for lack of time "
                                       "(--time-limit 100 s): 25.0 s remain"));
    assert_non_null(strstr(error.text, "may take 30.0 s"));
    assert_rows(&stage, 3);
    stage_clear(&stage);
}

/* A short one still fits where a long one does not. */
static void the_longest_that_fits_is_next(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start_limited(&stage, 1, "[conv2d]\nbatch = 1, 2, 48, 49\n");
    all_devices_arrive(&stage);
    assert_true(rank_measures_until(&stage, 0, 1050)); /* 49; 48 would take as long */
    assert_true(rank_measures_until(&stage, 0, 1051));
    assert_true(rank_measures_until(&stage, 0, 1052));
    assert_int_equal(end(&stage, &error), STATUS_INTERRUPTED);
    assert_non_null(strstr(error.text, "1 of 4 configurations are left"));
    stage_clear(&stage);
}

/* What one rank finds out frees work for those that were kept waiting. */
static void what_was_learnt_is_used_at_once(void **state)
{
    (void)state;
    struct stage stage;
    struct config config;
    stage_start_limited(&stage, 2, "[conv2d]\nbatch = 1, 32\n");
    coordinator_watch(stage.coordinator, 1080);
    all_devices_arrive(&stage); /* 10 s are left; the large one is assumed to take longer */
    assert_true(work_of(&stage, 0, &config));
    assert_false(work_of(&stage, 1, &config));
    char *text = record_text(&config, 0, RECORD_MEASURED);
    coordinator_watch(stage.coordinator, 1080.01);
    arrive(&stage, 0, LETTER_RECORD, text);
    free(text);
    assert_true(work_of(&stage, 0, &config) || work_of(&stage, 1, &config));
    assert_null(collected_take(&stage.sent, 0, LETTER_STOP));
    stage_clear(&stage);
}

/* What is being measured when the limit comes is not waited for. */
static void the_limit_ends_what_is_under_way(void **state)
{
    (void)state;
    struct stage stage;
    struct config config;
    struct error error;
    stage_start_limited(&stage, 2, four);
    all_devices_arrive(&stage);
    assert_true(work_of(&stage, 0, &config));
    coordinator_watch(stage.coordinator, 1089);
    assert_null(collected_take(&stage.sent, 0, LETTER_STOP));
    coordinator_watch(stage.coordinator, 1090.5);
    assert_int_equal(end(&stage, &error), STATUS_INTERRUPTED);
    assert_non_null(strstr(error.text, "4 of 4 configurations are left for lack of time"));
    assert_non_null(strstr(error.text, "it has come"));
    stage_clear(&stage);

    stage_start_limited(&stage, 2, four); /* in the middle of roofs */
    device_arrives(&stage, 1);
    coordinator_watch(stage.coordinator, 1091);
    assert_int_equal(end(&stage, &error), STATUS_INTERRUPTED);
    stage_clear(&stage);
}

/* Another run with this limit would leave the same: it is no use to go on. */
static void what_no_run_has_time_for_is_told_apart(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start_limited(&stage, 1, "[sweep]\ntimeout = 500 s\n[conv2d]\nbatch = 1, 128\n");
    coordinator_watch(stage.coordinator, 1060); /* roofs took so long */
    all_devices_arrive(&stage);
    assert_true(rank_measures_until(&stage, 0, 1060.5)); /* the small one */
    assert_int_equal(end(&stage, &error), STATUS_FAILED);
    assert_non_null(strstr(error.text,
                           "1 of them may take up to 96.0 s, more than any run with this "
                           "limit has for a row (30.0 s)"));
    stage_clear(&stage);
}

static void max_failures_ends_the_sweep(void **state)
{
    (void)state;
    struct stage stage;
    struct config config;
    struct error error;
    stage_start(&stage, 1, "[sweep]\nmax_failures = 2\n[conv2d]\nbatch = 1, 2, 4, 8\n");
    all_devices_arrive(&stage);
    assert_true(rank_measures(&stage, 0, RECORD_FAILED));
    assert_true(rank_measures(&stage, 0, RECORD_MEASURED));
    assert_true(rank_measures(&stage, 0, RECORD_FAILED));
    assert_false(work_of(&stage, 0, &config));
    assert_int_equal(end(&stage, &error), STATUS_FAILED);
    stage_clear(&stage);
}

/* ---- rows whose counters are read together ---- */

enum { TOGETHER = 3 };
static const double count_patience = 20;

/* Devices that count so many rows together. */
static void stage_start_together(struct stage *stage, int ranks, const char *manifest)
{
    struct error error;
    struct post post = collected_post(&stage->sent);
    *stage = stage_make(ranks, manifest);
    for (int rank = 0; rank < ranks; ++rank) {
        stage->devices[rank].count_together = TOGETHER;
        outcome_set(&stage->devices[rank].counters, COUNTED_YES, NULL);
    }
    struct coordinator_settings settings = {
        .manifest = stage->manifest,
        .plan = stage->plan,
        .devices = stage->devices,
        .ranks = stage->ranks,
        .roofs_patience = 100,
        .work_patience = 50,
        .count_patience = count_patience,
        .stop_patience = 10,
    };
    assert_ok(journal_open(stage->path, JOURNAL_CREATE, &stage->journal, &error), &error);
    stage->coordinator = coordinator_create(&settings, stage->journal, &post, &stage->log);
    assert_non_null(stage->coordinator);
    coordinator_watch(stage->coordinator, 1000);
    all_devices_arrive(stage);
}

/* The configuration that a rank was given; whether its counters may wait must be as expected. */
static bool work_that_waits(struct stage *stage, int rank, bool later, char text[WORKLOAD_TEXT])
{
    struct request request;
    struct error error;
    char *line = collected_take(&stage->sent, rank, LETTER_WORK);
    if (!line)
        return false;
    assert_ok(request_decode(line, &request, &error), &error);
    free(line);
    assert_int_equal(request.count_later, later);
    config_format(&request.config, text);
    return true;
}

static void rank_times(struct stage *stage, int rank, char text[WORKLOAD_TEXT])
{
    assert_true(work_that_waits(stage, rank, true, text));
    arrive(stage, rank, LETTER_TIMED, text);
}

static bool is_told_to_count(struct stage *stage, int rank)
{
    char *letter = collected_take(&stage->sent, rank, LETTER_COUNT);
    free(letter);
    return letter;
}

static void record_arrives(struct stage *stage, int rank, const char *configuration)
{
    struct config config;
    struct error error;
    assert_ok(config_parse(configuration, &config, &error), &error);
    char *text = record_text(&config, rank, RECORD_MEASURED);
    arrive(stage, rank, LETTER_RECORD, text);
    free(text);
}

static void assert_each_once(struct stage *stage, size_t count)
{
    struct error error;
    assert_int_equal(end(stage, &error), STATUS_OK);
    struct results *rows = stage_rows(stage);
    assert_int_equal(rows->row_count, count);
    assert_int_equal(earlier_rows_missing(stage->plan, rows), 0);
    results_destroy(rows);
    stage_clear(stage);
}

/* One after the other is handed out; as many as the device says are counted, and what is left at the end. */
static void rows_are_counted_together(void **state)
{
    (void)state;
    struct stage stage;
    char texts[4][WORKLOAD_TEXT];
    stage_start_together(&stage, 1, four);
    for (int i = 0; i < TOGETHER; ++i) {
        assert_false(is_told_to_count(&stage, 0));
        rank_times(&stage, 0, texts[i]);
    }
    assert_true(is_told_to_count(&stage, 0));
    for (int i = 0; i < TOGETHER; ++i) {
        assert_false(work_that_waits(&stage, 0, true, texts[3]));
        record_arrives(&stage, 0, texts[i]);
    }
    rank_times(&stage, 0, texts[3]);
    assert_true(is_told_to_count(&stage, 0));
    record_arrives(&stage, 0, texts[3]);
    assert_each_once(&stage, 4);
}

/* Each gets its next one when it is free: none has a batch of them beforehand. */
static void what_is_left_goes_to_whoever_is_free(void **state)
{
    (void)state;
    struct stage stage;
    char slow[WORKLOAD_TEXT], texts[3][WORKLOAD_TEXT];
    stage_start_together(&stage, 2, four);
    assert_true(work_that_waits(&stage, 0, true, slow));
    for (int i = 0; i < 3; ++i)
        rank_times(&stage, 1, texts[i]);
    assert_true(is_told_to_count(&stage, 1));
    for (int i = 0; i < 3; ++i)
        record_arrives(&stage, 1, texts[i]);
    arrive(&stage, 0, LETTER_TIMED, slow);
    assert_true(is_told_to_count(&stage, 0));
    record_arrives(&stage, 0, slow);
    assert_each_once(&stage, 4);
}

static void the_manifest_may_say_how_many(void **state)
{
    (void)state;
    static const struct {
        const char *manifest;
        int together;
    } rows[] = {
        {"[measure]\ncount_together = 2\n[conv2d grid]\nbatch = 1, 2, 4, 8\n", 2},
        {"[measure]\ncount_together = 1\n[conv2d grid]\nbatch = 1, 2, 4, 8\n", 1},
        {"[measure]\ncounters = off\n[conv2d grid]\nbatch = 1, 2, 4, 8\n", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct stage stage;
        char text[WORKLOAD_TEXT];
        stage_start_together(&stage, 1, rows[i].manifest);
        if (rows[i].together > 1) {
            rank_times(&stage, 0, text);
            rank_times(&stage, 0, text);
            assert_true(is_told_to_count(&stage, 0));
        } else {
            assert_true(work_that_waits(&stage, 0, false, text));
        }
        stage_clear(&stage);
    }
}

/* No more than about ten seconds of timings are at stake. */
static void long_rows_are_counted_earlier(void **state)
{
    (void)state;
    struct stage stage;
    char text[WORKLOAD_TEXT];
    stage_start_together(&stage, 1, four);
    assert_true(work_that_waits(&stage, 0, true, text));
    coordinator_watch(stage.coordinator, 1006);
    arrive(&stage, 0, LETTER_TIMED, text);
    assert_false(is_told_to_count(&stage, 0));
    assert_true(work_that_waits(&stage, 0, true, text));
    coordinator_watch(stage.coordinator, 1011);
    arrive(&stage, 0, LETTER_TIMED, text);
    assert_true(is_told_to_count(&stage, 0));
    stage_clear(&stage);
}

/* What has nothing to count is done at once, and what waits goes on waiting. */
static void a_finished_row_may_come_in_between(void **state)
{
    (void)state;
    struct stage stage;
    char first[WORKLOAD_TEXT], text[WORKLOAD_TEXT], third[WORKLOAD_TEXT];
    stage_start_together(&stage, 1, "[conv2d grid]\nbatch = 1, 2, 4\n");
    rank_times(&stage, 0, first);
    assert_true(work_that_waits(&stage, 0, true, text));
    record_arrives(&stage, 0, text);
    rank_times(&stage, 0, third);
    assert_true(is_told_to_count(&stage, 0));
    record_arrives(&stage, 0, first);
    record_arrives(&stage, 0, third);
    assert_each_once(&stage, 3);
}

/* The worker is lost with what waits: each is handed out again, and counted by itself. */
static void what_is_given_back_goes_by_itself(void **state)
{
    (void)state;
    for (int counting = 0; counting < 2; ++counting) {
        struct stage stage;
        char texts[3][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
        stage_start_together(&stage, 1, "[conv2d grid]\nbatch = 1, 2, 4\n");
        rank_times(&stage, 0, texts[0]);
        rank_times(&stage, 0, texts[1]);
        assert_true(work_that_waits(&stage, 0, true, texts[2]));
        if (counting) {
            arrive(&stage, 0, LETTER_TIMED, texts[2]);
            assert_true(is_told_to_count(&stage, 0));
            record_arrives(&stage, 0, texts[0]);
        } else {
            arrive(&stage, 0, LETTER_BACK, texts[0]);
        }
        arrive(&stage, 0, LETTER_BACK, texts[1]);
        if (counting)
            arrive(&stage, 0, LETTER_BACK, texts[2]);
        else /* with a new worker */
            record_arrives(&stage, 0, texts[2]);
        for (int i = 0; i < 2; ++i) {
            assert_true(work_that_waits(&stage, 0, false, again));
            record_arrives(&stage, 0, again);
        }
        assert_each_once(&stage, 3);
    }
}

/* It waits until nothing else does. */
static void what_goes_by_itself_joins_no_others(void **state)
{
    (void)state;
    struct stage stage;
    char texts[3][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
    stage_start_together(&stage, 2, "[conv2d grid]\nbatch = 1, 2, 4\n");
    rank_times(&stage, 0, texts[0]);
    assert_true(work_that_waits(&stage, 1, true, texts[1]));
    assert_true(work_that_waits(&stage, 0, true, texts[2]));
    arrive(&stage, 0, LETTER_BACK, texts[0]);
    arrive(&stage, 1, LETTER_TIMED, texts[1]);
    assert_true(is_told_to_count(&stage, 1));
    record_arrives(&stage, 1, texts[1]);
    assert_true(work_that_waits(&stage, 1, false, again));
    assert_string_equal(again, texts[0]);
    record_arrives(&stage, 1, again);
    arrive(&stage, 0, LETTER_TIMED, texts[2]);
    assert_true(is_told_to_count(&stage, 0));
    record_arrives(&stage, 0, texts[2]);
    assert_each_once(&stage, 3);
}

/* Of a rank that loses its device while it counts, any may be the cause: the next one is by itself. */
static void a_device_lost_over_counts_is_nobodys_fault(void **state)
{
    (void)state;
    struct stage stage;
    char texts[2][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
    stage_start_together(&stage, 3, "[conv2d grid]\nbatch = 1, 2\n");
    rank_times(&stage, 0, texts[0]);
    assert_true(is_told_to_count(&stage, 0));
    arrive(&stage, 0, LETTER_LOST, "first");
    assert_true(work_that_waits(&stage, 1, true, texts[1]));
    assert_true(work_that_waits(&stage, 2, false, again));
    assert_string_equal(again, texts[0]);
    arrive(&stage, 2, LETTER_LOST, "second");
    arrive(&stage, 1, LETTER_TIMED, texts[1]);
    assert_true(is_told_to_count(&stage, 1));
    record_arrives(&stage, 1, texts[1]);
    struct error error;
    assert_int_equal(end(&stage, &error), STATUS_OK);
    struct results *rows = stage_rows(&stage);
    assert_int_equal(rows->row_count, 2);
    assert_string_equal(rows->rows[0].error,
                        "2 devices were lost while measuring it, the last: second");
    assert_int_equal(rows->rows[1].status, RECORD_MEASURED);
    results_destroy(rows);
    stage_clear(&stage);
}

/* Each row that waits may take as long. A rank that writes again counts what it has, before it gets more. */
static void a_rank_may_be_silent_over_its_counts(void **state)
{
    (void)state;
    struct stage stage;
    char texts[2][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
    stage_start_together(&stage, 1, "[conv2d grid]\nbatch = 1, 2\n");
    rank_times(&stage, 0, texts[0]);
    rank_times(&stage, 0, texts[1]);
    assert_true(is_told_to_count(&stage, 0));
    coordinator_watch(stage.coordinator, 999 + 2 * count_patience);
    record_arrives(&stage, 0, texts[0]);
    coordinator_watch(stage.coordinator, 998 + 3 * count_patience);
    assert_null(collected_take(&stage.sent, 0, LETTER_STOP));
    coordinator_watch(stage.coordinator, 1000 + 3 * count_patience);
    assert_false(work_that_waits(&stage, 0, true, again)); /* overdue, and so all ranks are */
    record_arrives(&stage, 0, texts[1]);
    struct error error;
    assert_int_equal(end(&stage, &error), STATUS_DEVICE);
    struct results *rows = stage_rows(&stage);
    assert_int_equal(rows->row_count, 2);
    results_destroy(rows);
    stage_clear(&stage);
}

static void a_late_rank_counts_before_it_gets_more(void **state)
{
    (void)state;
    struct stage stage;
    char texts[4][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
    stage_start_together(&stage, 2, four);
    rank_times(&stage, 0, texts[0]);
    assert_true(work_that_waits(&stage, 0, true, texts[1]));
    coordinator_watch(stage.coordinator, 1005);
    rank_times(&stage, 1, texts[2]);
    coordinator_watch(stage.coordinator, 1072); /* 50 s and 20 s for the one that waits */
    arrive(&stage, 0, LETTER_TIMED, texts[1]);
    assert_true(is_told_to_count(&stage, 0));
    assert_false(work_that_waits(&stage, 0, true, again));
    record_arrives(&stage, 0, texts[0]);
    record_arrives(&stage, 0, texts[1]);
    for (bool worked = true; worked;) {
        worked = false;
        for (int rank = 0; rank < 2; ++rank) {
            char *line = collected_take(&stage.sent, rank, LETTER_WORK);
            struct request request;
            struct error error;
            if (line) {
                assert_ok(request_decode(line, &request, &error), &error);
                config_format(&request.config, again);
                record_arrives(&stage, rank, again);
                worked = true;
            }
            free(line);
            if (is_told_to_count(&stage, rank)) {
                record_arrives(&stage, 1, texts[2]);
                worked = true;
            }
        }
    }
    assert_each_once(&stage, 4);
}

static void a_row_out_of_the_blue_ends_the_sweep(void **state)
{
    (void)state;
    static const enum letter_kind kinds[] = {LETTER_TIMED, LETTER_BACK};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        struct stage stage;
        struct error error;
        stage_start_together(&stage, 1, four);
        arrive(&stage, 0, kinds[i], "conv2d batch=77");
        assert_int_equal(end(&stage, &error), STATUS_SYSTEM);
        stage_clear(&stage);
    }
}

/* What was measured meanwhile is kept; nothing more is handed out. */
static void an_interrupt_stops_everyone(void **state)
{
    (void)state;
    for (int by_letter = 0; by_letter < 2; ++by_letter) {
        struct stage stage;
        struct config config;
        struct error error;
        stage_start(&stage, 2, four);
        all_devices_arrive(&stage);
        if (by_letter)
            arrive(&stage, 1, LETTER_INTERRUPT, "");
        else
            coordinator_interrupt(stage.coordinator);
        assert_true(rank_measures(&stage, 1, RECORD_MEASURED));
        assert_false(work_of(&stage, 1, &config));
        assert_int_equal(end(&stage, &error), STATUS_INTERRUPTED);
        struct results *rows = stage_rows(&stage);
        assert_int_equal(rows->row_count, 1);
        results_destroy(rows);
        stage_clear(&stage);
    }
}

static void roofs_alone_end_with_the_last_device(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start(&stage, 2, "[peaks]\nmemory = dram\n");
    device_arrives(&stage, 1);
    assert_null(collected_take(&stage.sent, 0, LETTER_STOP));
    device_arrives(&stage, 0);
    assert_int_equal(end(&stage, &error), STATUS_OK);
    stage_clear(&stage);

    stage_start(&stage, 2, "[peaks]\nmemory = dram\n"); /* of roofs alone, a lost one is missed */
    device_arrives(&stage, 1);
    arrive(&stage, 0, LETTER_LOST, "gone");
    assert_int_equal(end(&stage, &error), STATUS_DEVICE);
    stage_clear(&stage);
}

/* The models of both precisions are the same, but one of them takes far longer: the sweep goes on with that. */
static void what_takes_long_comes_first(void **state)
{
    (void)state;
    const enum precision order[] = {PRECISION_FP32, PRECISION_FP16, PRECISION_FP32, PRECISION_FP32,
                                    PRECISION_FP32, PRECISION_FP16, PRECISION_FP16, PRECISION_FP16};
    struct stage stage;
    stage_start(&stage, 1, "[conv2d grid]\nbatch = 1600:1603:+1\nprecision = fp32, fp16\n");
    all_devices_arrive(&stage);
    for (size_t i = 0; i < sizeof order / sizeof *order; ++i) {
        struct config config = measured_in(&stage, 0, order[i] == PRECISION_FP16 ? 1 : 5);
        assert_int_equal(config_precision(&config), order[i]);
    }
    stage_clear(&stage);
}

static void searched_arrives(struct stage *stage, int from, const struct config *config)
{
    char *text = record_text(config, from, RECORD_MEASURED);
    json_t *object = json_loads(text, 0, NULL);
    free(text);
    record_patch(object, "algorithm", json_string("engine-1"));
    record_patch(object, "algorithm_id", json_string("0123456789abcdef"));
    record_patch(object, "algorithm_launches", json_string("0123456789abcdef"));
    record_patch(object, "algorithm_origin", json_string("search"));
    text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    arrive(stage, from, LETTER_RECORD, text);
    free(text);
}

static struct request request_of(struct stage *stage, int rank)
{
    struct request request;
    struct error error;
    char *line = collected_take(&stage->sent, rank, LETTER_WORK);
    assert_non_null(line);
    assert_ok(request_decode(line, &request, &error), &error);
    free(line);
    return request;
}

/* What one device's search chose, the next one of its model is offered. */
static void a_choice_travels_to_an_equal_device(void **state)
{
    (void)state;
    struct stage stage;
    stage = stage_make(3, "[sweep]\ndistribute = replicate\n[conv2d one]\nbatch = 16, 17\n");
    for (int rank = 0; rank < 3; ++rank)
        strcpy(stage.devices[rank].model, rank == 2 ? "H100" : "H200");
    begin(&stage, JOURNAL_CREATE);
    all_devices_arrive(&stage);
    for (int i = 0; i < 2; ++i) { /* rank 0 is ahead of the others */
        struct request request = request_of(&stage, 0);
        assert_false(choice_is_made(&request.choice));
        searched_arrives(&stage, 0, &request.config);
    }
    for (int rank = 1; rank < 3; ++rank) {
        struct request first = request_of(&stage, rank);
        assert_false(choice_is_made(&first.choice)); /* handed out before */
        char *text = record_text(&first.config, rank, RECORD_MEASURED);
        arrive(&stage, rank, LETTER_RECORD, text);
        free(text);
        struct request second = request_of(&stage, rank);
        assert_int_equal(choice_is_made(&second.choice), rank == 1);
        assert_string_equal(second.choice.algorithm, rank == 1 ? "engine-1" : "");
        assert_string_equal(second.choice.algorithm_origin, rank == 1 ? "run" : "");
    }
    stage_clear(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_travels_to_an_equal_device),
        cmocka_unit_test(what_takes_long_comes_first),
        cmocka_unit_test(nothing_is_handed_out_before_all_roofs),
        cmocka_unit_test(each_configuration_is_measured_once),
        cmocka_unit_test(work_comes_after_the_sync),
        cmocka_unit_test(a_record_is_journaled_as_it_came),
        cmocka_unit_test(nonsense_ends_the_sweep),
        cmocka_unit_test(a_record_out_of_turn_is_no_row),
        cmocka_unit_test(a_device_that_is_no_json_ends_the_sweep),
        cmocka_unit_test(what_a_lost_rank_measured_goes_to_another),
        cmocka_unit_test(a_rank_lost_over_its_roofs_does_not_hold_up_others),
        cmocka_unit_test(a_second_loss_is_a_failed_row),
        cmocka_unit_test(no_rank_left_is_the_end),
        cmocka_unit_test(replicate_measures_everything_everywhere),
        cmocka_unit_test(replicate_misses_what_a_lost_device_had),
        cmocka_unit_test(a_shared_uuid_is_the_first_ranks),
        cmocka_unit_test(what_was_measured_is_not_handed_out_again),
        cmocka_unit_test(a_silent_rank_holds_up_nobody),
        cmocka_unit_test(a_silent_rank_that_writes_again_gets_work),
        cmocka_unit_test(a_rank_silent_over_its_roofs_joins_late),
        cmocka_unit_test(all_silent_is_the_end),
        cmocka_unit_test(an_interrupt_does_not_wait_for_the_silent),
        cmocka_unit_test(nothing_is_begun_that_cannot_end),
        cmocka_unit_test(the_longest_that_fits_is_next),
        cmocka_unit_test(what_was_learnt_is_used_at_once),
        cmocka_unit_test(the_limit_ends_what_is_under_way),
        cmocka_unit_test(what_no_run_has_time_for_is_told_apart),
        cmocka_unit_test(max_failures_ends_the_sweep),
        cmocka_unit_test(rows_are_counted_together),
        cmocka_unit_test(what_is_left_goes_to_whoever_is_free),
        cmocka_unit_test(the_manifest_may_say_how_many),
        cmocka_unit_test(long_rows_are_counted_earlier),
        cmocka_unit_test(a_finished_row_may_come_in_between),
        cmocka_unit_test(what_is_given_back_goes_by_itself),
        cmocka_unit_test(what_goes_by_itself_joins_no_others),
        cmocka_unit_test(a_device_lost_over_counts_is_nobodys_fault),
        cmocka_unit_test(a_rank_may_be_silent_over_its_counts),
        cmocka_unit_test(a_late_rank_counts_before_it_gets_more),
        cmocka_unit_test(a_row_out_of_the_blue_ends_the_sweep),
        cmocka_unit_test(an_interrupt_stops_everyone),
        cmocka_unit_test(roofs_alone_end_with_the_last_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
