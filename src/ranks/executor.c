#include "ranks/executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum stage {
    STAGE_OPENING,   /* before the sweep: the device, its roofs */
    STAGE_IDLE,      /* waits for a message; rows may wait in the worker */
    STAGE_MEASURING, /* the worker measures a configuration */
    STAGE_COUNTING,  /* the worker counts the rows that wait */
    STAGE_LOST,      /* no device any more; waits for the end */
    STAGE_STOPPED
};

struct executor {
    struct executor_settings settings;
    struct sender sender;
    const struct log *log;
    struct station *station;
    enum stage stage;
    struct request request; /* of STAGE_MEASURING */
    int attempts;           /* of it, so far */
    char (*waiting)
        [WORKLOAD_TEXT]; /* owned: configurations that wait in the worker, in their order */
    size_t waiting_count;
};

struct executor *executor_create(const struct executor_settings *settings,
                                 const struct sender *sender, const struct log *log)
{
    struct executor *executor = calloc(1, sizeof *executor);
    if (!executor)
        return NULL;
    executor->settings = *settings;
    executor->sender = *sender;
    executor->log = log;
    executor->station = station_create(&settings->station, log);
    if (executor->station)
        return executor;
    free(executor);
    return NULL;
}

void executor_destroy(struct executor *executor)
{
    if (!executor)
        return;
    station_destroy(executor->station);
    free(executor->waiting);
    free(executor);
}

double executor_opening(const struct executor_settings *settings)
{
    return DEVICE_KINDS * station_opening(&settings->station);
}

double executor_longest(const struct executor_settings *settings)
{
    return (settings->retries + 1) * (settings->timeout + station_opening(&settings->station));
}

/* ---- the device ---- */

enum status executor_open(struct executor *executor, struct error *error)
{
    return station_open(executor->station, error);
}

const struct device *executor_device(const struct executor *executor)
{
    return station_device(executor->station);
}

const struct device_kind *executor_kind(const struct executor *executor)
{
    return station_kind(executor->station);
}

const char *executor_choice(const struct executor *executor)
{
    return station_choice(executor->station);
}

const char *executor_lost(const struct executor *executor)
{
    return station_lost(executor->station);
}

enum status executor_ask(struct executor *executor, const struct request *request,
                         enum reply_kind kind, double timeout, struct reply *reply,
                         struct error *error)
{
    return station_ask(executor->station, request, kind, timeout, reply, error);
}

enum status executor_reopen(struct executor *executor, struct error *error)
{
    return station_reopen(executor->station, error);
}

void executor_name_device(struct executor *executor, const char *uuid)
{
    struct device *device = station_device(executor->station);
    snprintf(device->uuid, sizeof device->uuid, "%s", uuid);
}

void executor_set_roofs(struct executor *executor, const struct device *device)
{
    struct device *own = station_device(executor->station);
    memcpy(own->roofs, device->roofs, sizeof own->roofs);
    own->roof_count = device->roof_count;
    memcpy(own->roofs_reused, device->roofs_reused, sizeof own->roofs_reused);
    device_set_peaks(own);
}

/* ---- messages to rank 0 ---- */

static void send_message(struct executor *executor, enum message_kind kind, const char *text)
{
    struct error error;
    if (executor->sender.send(executor->sender.context, 0, kind, text, &error)) {
        log_print(executor->log, LOG_WARNING, "%s", error.text);
        abort(); /* without memory for a message, rank 0 would wait for ever */
    }
}

/* Steals the reference. */
static void send_json(struct executor *executor, enum message_kind kind, json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    send_message(executor, kind, text ? text : "");
    free(text);
}

/* What was timed and not counted is lost with its worker. */
static void give_back(struct executor *executor)
{
    for (size_t i = 0; i < executor->waiting_count; ++i)
        send_message(executor, MESSAGE_RETURNED, executor->waiting[i]);
    executor->waiting_count = 0;
}

static void report_loss(struct executor *executor, const char *why)
{
    char text[1600], name[160];
    station_name(executor->station, name);
    snprintf(text, sizeof text, "%s on %s: %.1000s", name, executor_device(executor)->hostname,
             why);
    give_back(executor);
    executor->stage = STAGE_LOST;
    send_message(executor, MESSAGE_DEVICE_LOST, text);
}

void executor_start(struct executor *executor)
{
    struct device *device = station_device(executor->station);
    if (executor_lost(executor)) {
        report_loss(executor, executor_lost(executor));
        return;
    }
    executor->stage = STAGE_IDLE;
    snprintf(device->key, sizeof device->key, "%s", executor->settings.device_key);
    send_json(executor, MESSAGE_DEVICE, device_encode(device));
}

/* The record as the worker wrote it, with what only its rank knows. Steals the reference. */
static void deliver(struct executor *executor, json_t *record, int attempts)
{
    record_patch(record, "device_key", text_encode(executor->settings.device_key));
    record_patch(record, "job_id", text_encode(executor->settings.job_id));
    record_patch(record, "attempts", json_integer(attempts));
    send_json(executor, MESSAGE_RECORD, record);
}

static void deliver_failure(struct executor *executor, const char *why)
{
    struct record record;
    record_init(&record);
    record_set_config(&record, &executor->request.config);
    record.status = RECORD_FAILED;
    record.start_time = clock_epoch();
    snprintf(record.error, sizeof record.error, "%s", why);
    executor->stage = STAGE_IDLE;
    deliver(executor, record_encode(&record), executor->attempts);
    record_clear(&record);
}

/* ---- rows ---- */

/* Sends what is to be measured, through a new worker if the last one is gone. */
static void attempt(struct executor *executor)
{
    if (station_has_worker(executor->station))
        station_send(executor->station, &executor->request,
                     executor->settings.timeout * (double)(1 + executor->waiting_count));
    else
        station_replace(executor->station);
}

/* The next attempt is by itself: then what is lost with it is it alone. */
static void attempt_failed(struct executor *executor, const char *why)
{
    char text[WORKLOAD_TEXT];
    station_drop(executor->station);
    give_back(executor);
    config_format(&executor->request.config, text);
    log_print(executor->log, LOG_WARNING, "%s: %s (attempt %d of %d)", text, why,
              executor->attempts, executor->settings.retries + 1);
    if (executor->attempts > executor->settings.retries) {
        deliver_failure(executor, why);
        return;
    }
    ++executor->attempts;
    executor->request.count_later = false;
    choice_init(&executor->request.choice); /* it may be what the worker was lost over */
    attempt(executor);
}

static bool is_requested(const struct executor *executor, const char *configuration)
{
    char text[WORKLOAD_TEXT];
    config_format(&executor->request.config, text);
    return strcmp(text, configuration) == 0;
}

/* It is timed, and waits. */
static void take_timed(struct executor *executor, const char *configuration)
{
    char(*grown)[WORKLOAD_TEXT] =
        realloc(executor->waiting, (executor->waiting_count + 1) * sizeof *grown);
    if (!grown) {
        attempt_failed(executor, "the rank has no memory for a row that waits");
        return;
    }
    executor->waiting = grown;
    snprintf(grown[executor->waiting_count++], sizeof *grown, "%s", configuration);
    executor->stage = STAGE_IDLE;
    send_message(executor, MESSAGE_TIMED, configuration);
}

static void take_measured(struct executor *executor, const char *line)
{
    struct reply reply;
    struct error error;
    reply_init(&reply);
    if (reply_decode(line, &reply, &error)) {
        error_prefix(&error, "%s", executor_kind(executor)->worker);
        attempt_failed(executor, error.text);
    } else if (reply.kind == REPLY_RECORD && is_requested(executor, reply.record.configuration)) {
        executor->stage = STAGE_IDLE;
        deliver(executor, json_incref(reply.record_json), executor->attempts);
    } else if (reply.kind == REPLY_TIMED && executor->request.count_later &&
               is_requested(executor, reply.configuration)) {
        take_timed(executor, reply.configuration);
    } else if (reply.kind == REPLY_ERROR && reply.status != STATUS_DEVICE) {
        deliver_failure(executor, reply.error.text);
    } else {
        attempt_failed(executor,
                       reply.kind == REPLY_ERROR ? reply.error.text : station_out_of_turn);
    }
    reply_clear(&reply);
}

/* ---- counts ---- */

/* Asks for the record of the row that has waited longest; the first time the worker counts them all. */
static void ask_count(struct executor *executor, size_t rows)
{
    const struct request request = request_default(REQUEST_COUNT);
    executor->stage = STAGE_COUNTING;
    station_send(executor->station, &request, executor->settings.timeout * (double)rows);
}

/* Nobody knows over which of them. Rank 0 hands them out again, each by itself. */
static void count_failed(struct executor *executor, const char *why)
{
    log_print(executor->log, LOG_WARNING, "counting %zu configurations, from %s on: %s",
              executor->waiting_count, executor->waiting[0], why);
    station_drop(executor->station);
    executor->stage = STAGE_IDLE;
    give_back(executor);
}

static void waiting_remove_first(struct executor *executor)
{
    memmove(executor->waiting, executor->waiting + 1,
            --executor->waiting_count * sizeof *executor->waiting);
}

static void take_counted(struct executor *executor, const char *line)
{
    struct reply reply;
    struct error error;
    const struct request request = request_default(REQUEST_COUNT);
    reply_init(&reply);
    enum status status =
        station_read(executor->station, &request, REPLY_RECORD, line, &reply, &error);
    if (status == STATUS_OK && strcmp(reply.record.configuration, executor->waiting[0]) != 0)
        status = error_set(&error, STATUS_DEVICE, "%s", station_out_of_turn);
    if (status) {
        count_failed(executor, error.text);
    } else {
        deliver(executor, json_incref(reply.record_json), 1);
        waiting_remove_first(executor);
        if (executor->waiting_count > 0)
            ask_count(executor, 1);
        else
            executor->stage = STAGE_IDLE;
    }
    reply_clear(&reply);
}

/* ---- what happens ---- */

static void take_line(struct executor *executor, const char *line)
{
    if (executor->stage == STAGE_MEASURING) {
        take_measured(executor, line);
    } else if (executor->stage == STAGE_COUNTING) {
        take_counted(executor, line);
    } else { /* what nobody asked: the next work starts a new worker */
        station_drop(executor->station);
        give_back(executor);
    }
}

static void worker_lost(struct executor *executor, const char *why)
{
    if (executor->stage == STAGE_MEASURING) {
        attempt_failed(executor, why);
    } else if (executor->stage == STAGE_COUNTING) {
        count_failed(executor, why);
    } else {
        station_drop(executor->station);
        give_back(executor);
    }
}

void executor_step(struct executor *executor)
{
    char *line = NULL;
    struct error why;
    if (executor->stage == STAGE_STOPPED)
        return;
    switch (station_step(executor->station, &line, &why)) {
    case STATION_LINE:
        take_line(executor, line);
        break;
    case STATION_WORKER_LOST:
        worker_lost(executor, why.text);
        break;
    case STATION_READY:
        attempt(executor);
        break;
    case STATION_LOST:
        report_loss(executor, why.text);
        break;
    case STATION_QUIET:
        break;
    }
    free(line);
}

bool executor_stopped(const struct executor *executor)
{
    return executor->stage == STAGE_STOPPED;
}

bool executor_works(const struct executor *executor)
{
    return executor->stage == STAGE_MEASURING || executor->stage == STAGE_COUNTING;
}

static void stop(struct executor *executor)
{
    station_drop(executor->station);
    executor->stage = STAGE_STOPPED;
    send_message(executor, MESSAGE_FINISHED, "");
}

static void take_work(struct executor *executor, const char *text)
{
    struct error error;
    if (request_decode(text, &executor->request, &error)) {
        station_drop(executor->station);
        station_lose(executor->station, error.text);
        return;
    }
    executor->stage = STAGE_MEASURING;
    executor->attempts = 1;
    attempt(executor);
}

void executor_handle(struct executor *executor, const struct message *message)
{
    if (message->kind == MESSAGE_STOP)
        stop(executor);
    else if (message->kind == MESSAGE_MEASURE)
        take_work(executor, message->text);
    else if (executor->stage == STAGE_IDLE &&
             executor->waiting_count > 0) /* else given back by now */
        ask_count(executor, executor->waiting_count);
}

void executor_poll(const struct executor *executor, struct pollfd descriptors[2], nfds_t *count)
{
    station_poll(executor->station, descriptors, count);
}
