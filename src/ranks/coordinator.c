#include "ranks/coordinator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/protocol.h"
#include "ranks/earlier_rows.h"
#include "ranks/forecast.h"
#include "ranks/progress.h"
#include "model/workloads/program.h"
#include "ranks/schedule.h"
#include "ranks/shortage.h"
#include "results/sampling.h"

enum rank_state {
    RANK_PREPARING,
    RANK_IDLE,
    RANK_BUSY,
    RANK_LOST,    /* those from here on get no work */
    RANK_SILENT,  /* was preparing; may write again */
    RANK_OVERDUE, /* was busy; may write again */
    RANK_GONE
};

struct rank {
    enum rank_state state;
    size_t item;  /* of RANK_BUSY and RANK_OVERDUE */
    double since; /* s, of RANK_PREPARING and RANK_BUSY */
};

struct coordinator {
    const struct manifest *manifest;
    const struct plan *plan;
    const struct device *devices;
    double roofs_patience, work_patience, stop_patience; /* s, 0: for ever */
    double now, stopped;                                 /* s, as told by coordinator_watch */
    bool watched;                                        /* it has been told */
    bool unsettled; /* since coordinator_settle something has come */
    struct journal *journal;
    struct post post;
    const struct log *log;
    struct schedule *schedule;
    struct forecast *forecast;
    struct time_limit limit;
    double room; /* s that were left for rows when the first one could begin; NaN before that */
    struct progress *progress;
    struct rank *ranks;
    int rank_count;
    unsigned char *losses; /* by plan item: devices that were lost while measuring it */
    size_t failures;
    size_t dropped; /* with replicate, configurations whose device was lost; of roofs, devices */
    bool stopping;
    enum status status;
    struct error error;
};

static bool tells(int64_t status, int64_t attempts)
{
    return status == RECORD_MEASURED && attempts <= 1;
}

/* One attempt of a row that was measured tells how long its like take. */
static void learn(struct coordinator *coordinator, size_t item, int64_t status, int64_t attempts,
                  double seconds)
{
    const struct plan_item *measured = &coordinator->plan->items[item];
    if (tells(status, attempts) && seconds > 0)
        forecast_learn(coordinator->forecast, measured->config.workload, measured->cost, seconds);
}

static bool same_device(const struct device *a, const struct device *b)
{
    return strcmp(a->uuid, b->uuid) == 0 && strcmp(a->hostname, b->hostname) == 0;
}

/* What marking needs to know of the earlier rows. */
struct marking {
    struct coordinator *coordinator;
    const struct coordinator_settings *settings;
};

/* A row of a device like one of this run's tells how long its configuration takes. */
static void learn_earlier(const struct marking *marking, const struct device *device,
                          const struct row *row, size_t item)
{
    const struct coordinator_settings *settings = marking->settings;
    for (int rank = 0; rank < settings->ranks; ++rank)
        if (strcmp(device->kind, settings->devices[rank].kind) == 0 &&
            strcmp(device->model, settings->devices[rank].model) == 0) {
            learn(marking->coordinator, item, row->status, row->attempts, row->wall_time);
            if (tells(row->status, row->attempts))
                schedule_learn(marking->coordinator->schedule, rank, item, row->wall_time, true);
            return;
        }
}

/* Marks the row's item as done: for everyone, or with replicate for the rank that has its
 * device. */
static void mark_done(void *context, const struct row *row, size_t item)
{
    const struct marking *marking = context;
    const struct coordinator_settings *settings = marking->settings;
    int64_t index = results_device(settings->earlier, row->device_key);
    const struct device *device = index < 0 ? NULL : &settings->earlier->devices[index];
    for (int rank = 0; rank < settings->ranks; ++rank)
        if (!settings->manifest->sweep.replicate ||
            (device && same_device(device, &settings->devices[rank])))
            schedule_done(marking->coordinator->schedule, rank, item);
    if (device)
        learn_earlier(marking, device, row, item);
}

static bool mark_earlier(struct coordinator *coordinator,
                         const struct coordinator_settings *settings)
{
    struct marking marking = {coordinator, settings};
    return !settings->earlier ||
           earlier_rows_each(settings->plan, settings->earlier, mark_done, &marking);
}

struct coordinator *coordinator_create(const struct coordinator_settings *settings,
                                       struct journal *journal, const struct post *post,
                                       const struct log *log)
{
    struct coordinator *created = calloc(1, sizeof *created);
    if (!created)
        return NULL;
    created->manifest = settings->manifest;
    created->plan = settings->plan;
    created->devices = settings->devices;
    created->roofs_patience = settings->roofs_patience;
    created->work_patience = settings->work_patience;
    created->stop_patience = settings->stop_patience;
    created->journal = journal;
    created->post = *post;
    created->log = log;
    created->rank_count = settings->ranks;
    created->ranks = calloc((size_t)settings->ranks, sizeof *created->ranks);
    created->schedule =
        schedule_create(settings->plan, settings->ranks, settings->manifest->sweep.replicate);
    created->forecast =
        forecast_create(&settings->manifest->measure, settings->manifest->sweep.timeout);
    created->limit = settings->limit ? *settings->limit : time_limit_none();
    created->room = NAN;
    created->losses = calloc(settings->plan->count, sizeof *created->losses);
    if (created->ranks && created->losses && created->schedule && created->forecast &&
        mark_earlier(created, settings)) {
        size_t total = schedule_total(created->schedule);
        size_t left = schedule_remaining(created->schedule);
        created->progress = progress_create(log, "", total - left, total);
        if (created->progress)
            return created;
    }
    coordinator_destroy(created);
    return NULL;
}

void coordinator_destroy(struct coordinator *coordinator)
{
    if (!coordinator)
        return;
    progress_destroy(coordinator->progress);
    schedule_destroy(coordinator->schedule);
    forecast_destroy(coordinator->forecast);
    free(coordinator->losses);
    free(coordinator->ranks);
    free(coordinator);
}

/* The first reason counts. Everyone is told, the lost ranks too: they wait for it. */
static void stop(struct coordinator *coordinator, enum status status, const char *why)
{
    struct error error;
    if (coordinator->stopping)
        return;
    coordinator->stopping = true;
    coordinator->stopped = coordinator->now;
    coordinator->status = error_set(&coordinator->error, status, "%s", why);
    for (int rank = 0; rank < coordinator->rank_count; ++rank)
        if (post_send(&coordinator->post, rank, LETTER_STOP, "", &error))
            abort(); /* out of memory: the others would wait for ever */
}

/* Rows that the file will have. */
static size_t row_count(const struct coordinator *coordinator)
{
    return schedule_total(coordinator->schedule) - schedule_remaining(coordinator->schedule);
}

static double time_left(const struct coordinator *coordinator)
{
    return time_limit_left(&coordinator->limit, coordinator->now, row_count(coordinator));
}

/* Nothing is begun that cannot end. */
static bool fits(const void *context, size_t item)
{
    const struct coordinator *coordinator = context;
    const struct plan_item *next = &coordinator->plan->items[item];
    return forecast_estimate(coordinator->forecast, next->config.workload, next->cost).seconds <=
           time_left(coordinator);
}

/* A program ends before its worker is taken for hung: then its row has its last words. */
static void program_place(const struct manifest *manifest, struct request *request)
{
    const double share = 0.9;
    snprintf(request->folder, sizeof request->folder, "%s",
             manifest->folder ? manifest->folder : "");
    request->timeout = share * manifest->sweep.timeout;
}

static void hand_out(struct coordinator *coordinator, int rank)
{
    struct rank *state = &coordinator->ranks[rank];
    schedule_filter *may = isinf(coordinator->limit.end) ? NULL : fits;
    struct error error;
    state->state = RANK_IDLE;
    if (coordinator->stopping ||
        !schedule_next(coordinator->schedule, rank, may, coordinator, &state->item))
        return;
    struct request request = request_default(REQUEST_MEASURE);
    request.measure = coordinator->manifest->measure;
    request.seed = coordinator->manifest->sweep.seed;
    request.config = coordinator->plan->items[state->item].config;
    if (config_is_program(&request.config))
        program_place(coordinator->manifest, &request);
    char *line = request_encode(&request);
    state->state = RANK_BUSY;
    state->since = coordinator->now;
    if (!line || post_send(&coordinator->post, rank, LETTER_WORK, line, &error))
        stop(coordinator, STATUS_SYSTEM, "no memory");
    free(line);
}

/* What is left, and why; see shortage.h. */
static void stop_for_time(struct coordinator *coordinator)
{
    struct shortage shortage = shortage_of(time_left(coordinator), coordinator->room);
    char text[SHORTAGE_TEXT];
    int queues = coordinator->manifest->sweep.replicate ? coordinator->rank_count : 1;
    for (int rank = 0; rank < queues; ++rank)
        for (size_t item = 0; item < coordinator->plan->count; ++item) {
            const struct plan_item *left = &coordinator->plan->items[item];
            if (!schedule_is_done(coordinator->schedule, rank, item))
                shortage_add(&shortage, forecast_estimate(coordinator->forecast,
                                                          left->config.workload, left->cost));
        }
    shortage_format(&shortage, &coordinator->limit, schedule_total(coordinator->schedule), text);
    stop(coordinator, shortage_is_hopeless(&shortage) ? STATUS_FAILED : STATUS_INTERRUPTED, text);
}

static void stop_when_done(struct coordinator *coordinator)
{
    bool preparing = false, able = false, busy = false;
    for (int rank = 0; rank < coordinator->rank_count; ++rank) {
        preparing |= coordinator->ranks[rank].state == RANK_PREPARING;
        busy |= coordinator->ranks[rank].state == RANK_BUSY;
        able |= coordinator->ranks[rank].state < RANK_LOST;
    }
    if (schedule_remaining(coordinator->schedule) == 0 && !preparing)
        stop(coordinator, coordinator->dropped ? STATUS_DEVICE : STATUS_OK,
             "a device was lost before it had measured everything; --resume measures the rest");
    else if (!able)
        stop(coordinator, STATUS_DEVICE, "no rank is left that has a usable device");
    else if (!preparing && !busy && !isinf(coordinator->limit.end) && !coordinator->stopping)
        stop_for_time(coordinator); /* what could still end has been handed out */
}

static void append(struct coordinator *coordinator, const char *kind, json_t *entry)
{
    struct error error;
    if (journal_append(coordinator->journal, kind, entry, &error))
        stop(coordinator, STATUS_SYSTEM, error.text);
}

/* Nothing is handed out while a rank measures its roofs: on shared cores or memory that would spoil
 * both. */
static void hand_out_when_prepared(struct coordinator *coordinator)
{
    for (int rank = 0; rank < coordinator->rank_count; ++rank)
        if (coordinator->ranks[rank].state == RANK_PREPARING)
            return;
    if (isnan(coordinator->room))
        coordinator->room = time_left(coordinator);
    for (int rank = 0; rank < coordinator->rank_count; ++rank)
        if (coordinator->ranks[rank].state == RANK_IDLE)
            hand_out(coordinator, rank);
}

static void take_device(struct coordinator *coordinator, const struct letter *letter)
{
    json_t *object = json_loads(letter->text, 0, NULL);
    if (!object) {
        stop(coordinator, STATUS_SYSTEM, "a rank sent a device description that is no JSON");
        return;
    }
    append(coordinator, "device", object);
    log_print(coordinator->log, LOG_DEBUG, "rank %d has measured its roofs", letter->from);
    coordinator->ranks[letter->from].state = RANK_IDLE;
    progress_start(coordinator->progress); /* the last one's roofs count */
}

/* What a reader of its time should know at once. */
static void log_sampling(const struct coordinator *coordinator, const struct record *record)
{
    const int64_t told[] = {record->host_paced, record->bimodal};
    static const char marks[] = {'h', 'b'};
    for (size_t i = 0; i < sizeof marks; ++i)
        if (told[i] == 1)
            log_print(coordinator->log, LOG_INFO, "%s: %s", record->configuration,
                      sampling_mark_text(marks[i]));
}

static void count_outcome(struct coordinator *coordinator, const struct record *record)
{
    int64_t most = coordinator->manifest->sweep.max_failures;
    log_print(coordinator->log, LOG_DEBUG, "%s: %s%s%s", record->configuration,
              record_status_name[record->status], record->error[0] ? ": " : "", record->error);
    log_sampling(coordinator, record);
    if (record->status == RECORD_FAILED)
        ++coordinator->failures;
    if (most >= 0 && coordinator->failures >= (size_t)most)
        stop(coordinator, STATUS_FAILED, "as many configurations failed as max_failures allows");
}

/* Journals the record of a plan item, whose JSON this is, and counts the item as done for this
 * rank. Label and hash are the plan's, whatever a worker says: a resumed sweep finds the row by
 * its hash. Steals the reference. */
static void finish_item(struct coordinator *coordinator, int rank, size_t item,
                        const struct record *record, json_t *json)
{
    const struct plan_item *asked = &coordinator->plan->items[item];
    record_patch(json, "label", text_encode(asked->label));
    record_patch(json, "config_hash", json_string(asked->hash));
    append(coordinator, "record", json);
    schedule_done(coordinator->schedule, rank, item);
    count_outcome(coordinator, record);
    progress_update(coordinator->progress, schedule_remaining(coordinator->schedule),
                    coordinator->failures);
}

/* A silent rank that writes again may be late: another one has measured its configuration. */
static void take_item(struct coordinator *coordinator, int from, const struct record *record,
                      json_t *object)
{
    size_t item = coordinator->ranks[from].item;
    if (!schedule_is_done(coordinator->schedule, from, item)) {
        finish_item(coordinator, from, item, record, object);
        return;
    }
    log_print(coordinator->log, LOG_DEBUG, "rank %d is late, there is a row already: %s", from,
              record->configuration);
    json_decref(object);
}

static void take_record(struct coordinator *coordinator, const struct letter *letter)
{
    struct record record;
    struct error error;
    const struct rank *rank = &coordinator->ranks[letter->from];
    bool asked = rank->state == RANK_BUSY || rank->state == RANK_OVERDUE;
    json_t *object = json_loads(letter->text, 0, NULL);
    record_init(&record);
    if (!asked || record_decode(object, &record, &error)) {
        stop(coordinator, STATUS_SYSTEM, "a rank sent something that is no record");
        json_decref(object);
    } else {
        if (rank->state == RANK_BUSY)
            learn(coordinator, rank->item, record.status, record.attempts,
                  coordinator->now - rank->since);
        if (tells(record.status, record.attempts))
            schedule_learn(coordinator->schedule, letter->from, rank->item, record.wall_time,
                           false);
        take_item(coordinator, letter->from, &record, object);
        coordinator->ranks[letter->from].state = RANK_IDLE;
    }
    record_clear(&record);
}

/* What a lost rank was measuring goes to another rank. But a configuration over which two
 * devices were lost is taken for the cause, and has failed: otherwise it would go on to all the
 * others. With replicate nothing goes to another rank. */
static void count_device_loss(struct coordinator *coordinator, int from, const char *why)
{
    enum { LOSSES_MOST = 2 };
    const struct rank *rank = &coordinator->ranks[from];
    if (coordinator->manifest->sweep.replicate || rank->state != RANK_BUSY ||
        schedule_is_done(coordinator->schedule, from, rank->item) ||
        ++coordinator->losses[rank->item] < LOSSES_MOST)
        return;
    struct record record;
    record_init(&record);
    record_set_config(&record, &coordinator->plan->items[rank->item].config);
    record.status = RECORD_FAILED;
    snprintf(record.error, sizeof record.error,
             "%d devices were lost while measuring it, the last: %s", LOSSES_MOST, why);
    finish_item(coordinator, from, rank->item, &record, record_encode(&record));
}

/* Whatever the rank had goes to the others. */
static void lose_rank(struct coordinator *coordinator, int from, enum rank_state state,
                      const char *why)
{
    count_device_loss(coordinator, from, why);
    coordinator->ranks[from].state = state;
    size_t total = schedule_total(coordinator->schedule);
    schedule_lose(coordinator->schedule, from);
    coordinator->dropped += total - schedule_total(coordinator->schedule);
    coordinator->dropped += coordinator->plan->count == 0; /* its roofs were all that was wanted */
    coordinator->unsettled = true;
}

/* " over CONFIGURATION", of a rank that has one. */
static void work_format(const struct coordinator *coordinator, int from,
                        char text[WORKLOAD_TEXT + 8])
{
    const struct rank *rank = &coordinator->ranks[from];
    strcpy(text, " over ");
    if (rank->state == RANK_BUSY)
        config_format(&coordinator->plan->items[rank->item].config, text + strlen(text));
    else
        text[0] = '\0';
}

static void take_loss(struct coordinator *coordinator, const struct letter *letter)
{
    char work[WORKLOAD_TEXT + 8];
    work_format(coordinator, letter->from, work);
    log_print(coordinator->log, LOG_WARNING, "rank %d has lost its device%s, the others go on: %s",
              letter->from, work, letter->text);
    lose_rank(coordinator, letter->from, RANK_LOST, letter->text);
}

static bool is_over(double patience, double since, double now)
{
    return patience > 0 && now - since > patience;
}

static void lose_if_silent(struct coordinator *coordinator, int from)
{
    const struct rank *rank = &coordinator->ranks[from];
    bool busy = rank->state == RANK_BUSY;
    double patience = busy ? coordinator->work_patience : coordinator->roofs_patience;
    char why[400], work[WORKLOAD_TEXT + 8];
    if ((!busy && rank->state != RANK_PREPARING) ||
        !is_over(patience, rank->since, coordinator->now))
        return;
    snprintf(why, sizeof why, "rank %d on %.200s has said nothing for %.0f s", from,
             coordinator->devices[from].hostname, coordinator->now - rank->since);
    work_format(coordinator, from, work);
    log_print(coordinator->log, LOG_WARNING, "%s%s; the others go on", why, work);
    lose_rank(coordinator, from, busy ? RANK_OVERDUE : RANK_SILENT, why);
}

void coordinator_settle(struct coordinator *coordinator)
{
    struct error error;
    if (!coordinator->unsettled)
        return;
    coordinator->unsettled = false;
    if (journal_sync(coordinator->journal, &error))
        stop(coordinator, STATUS_SYSTEM, error.text);
    hand_out_when_prepared(coordinator); /* what has been learnt may free others' as well */
    stop_when_done(coordinator);
}

void coordinator_watch(struct coordinator *coordinator, double now)
{
    coordinator->now = now;
    for (int rank = 0; !coordinator->watched && rank < coordinator->rank_count; ++rank)
        coordinator->ranks[rank].since = now;
    coordinator->watched = true;
    for (int rank = 0; !coordinator->stopping && rank < coordinator->rank_count; ++rank)
        lose_if_silent(coordinator, rank);
    coordinator_settle(coordinator);
    if (!coordinator->stopping && time_left(coordinator) <= 0)
        stop_for_time(coordinator); /* with rows, or roofs, under way */
}

void coordinator_interrupt(struct coordinator *coordinator)
{
    stop(coordinator, STATUS_INTERRUPTED, "interrupted by a signal");
}

void coordinator_handle(struct coordinator *coordinator, const struct letter *letter)
{
    switch (letter->kind) {
    case LETTER_DEVICE:
        take_device(coordinator, letter);
        break;
    case LETTER_RECORD:
        take_record(coordinator, letter);
        break;
    case LETTER_LOST:
        take_loss(coordinator, letter);
        break;
    case LETTER_INTERRUPT:
        coordinator_interrupt(coordinator);
        break;
    case LETTER_BYE:
        coordinator->ranks[letter->from].state = RANK_GONE;
        return;
    case LETTER_WORK:
    case LETTER_STOP:
        return;
    }
    coordinator->unsettled = true;
}

bool coordinator_finished(const struct coordinator *coordinator)
{
    bool waiting = false;
    for (int rank = 0; rank < coordinator->rank_count; ++rank)
        waiting |= coordinator->ranks[rank].state != RANK_GONE;
    return !waiting || (coordinator->stopping && is_over(coordinator->stop_patience,
                                                         coordinator->stopped, coordinator->now));
}

bool coordinator_absent(const struct coordinator *coordinator, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int rank = 0; rank < coordinator->rank_count; ++rank)
        if (coordinator->ranks[rank].state != RANK_GONE && used < size)
            used += (size_t)snprintf(text + used, size - used, "%srank %d on %s", used ? ", " : "",
                                     rank, coordinator->devices[rank].hostname);
    return used > 0;
}

size_t coordinator_left(const struct coordinator *coordinator)
{
    return schedule_remaining(coordinator->schedule);
}

enum status coordinator_status(const struct coordinator *coordinator, struct error *error)
{
    *error = coordinator->error;
    return coordinator->status;
}
