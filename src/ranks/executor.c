#include "ranks/executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/protocol.h"
#include "ranks/session.h"

enum stage {
    STAGE_OPENING,
    STAGE_IDLE,      /* waits for work */
    STAGE_MEASURING, /* the worker measures a configuration */
    STAGE_LOST,      /* no device any more; waits for the end */
    STAGE_STOPPED
};

/* Opening a device loads libraries of gigabytes, at times from a slow file system. */
static const double open_timeout = 120;
/* New workers that may fail to open the device one after the other before it counts as lost. */
static const int reopen_most = 3;
static const char out_of_turn[] = "the worker's answer is about something else";

struct executor {
    struct executor_settings settings;
    struct mailbox *mailbox;
    const struct log *log;
    struct worker_client *client; /* NULL: the next attempt starts one */
    const struct device_kind *kind;
    struct device device;
    char choice[1200];
    char lost[1024]; /* why there is no device any more, before the sweep has begun */
    enum stage stage;
    char *request;  /* line that the present stage is about; owned */
    int attempts;   /* of it, so far */
    int reopened;   /* workers in a row that could not open the device */
    bool reopening; /* the reply that is due is about opening the device again */
};

struct executor *executor_create(const struct executor_settings *settings, struct mailbox *mailbox,
                                 const struct log *log)
{
    struct executor *executor = calloc(1, sizeof *executor);
    if (!executor)
        return NULL;
    executor->settings = *settings;
    executor->mailbox = mailbox;
    executor->log = log;
    return executor;
}

void executor_destroy(struct executor *executor)
{
    if (!executor)
        return;
    worker_client_destroy(executor->client);
    free(executor->request);
    free(executor);
}

const struct device *executor_device(const struct executor *executor)
{
    return &executor->device;
}

const struct device_kind *executor_kind(const struct executor *executor)
{
    return executor->kind;
}

const char *executor_choice(const struct executor *executor)
{
    return executor->choice;
}

bool executor_stopped(const struct executor *executor)
{
    return executor->stage == STAGE_STOPPED;
}

static enum status start_worker(struct executor *executor, struct error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", executor->settings.worker_folder, executor->kind->worker);
    /* A GPU's worker, too, keeps to its share of the cores: its reference runs on all of them, and
     * those of several ranks would spin against each other. */
    return worker_client_start(path, &executor->settings.binding.cpus,
                               executor->log->level >= LOG_DEBUG ? STDERR_FILENO : -1,
                               &executor->client, error);
}

static void send_request(struct executor *executor, const struct request *request, double timeout)
{
    char *line = request_encode(request);
    if (line)
        worker_client_send(executor->client, line, timeout);
    free(line);
}

static void drop_worker(struct executor *executor)
{
    worker_client_destroy(executor->client);
    executor->client = NULL;
}

static bool is_answer(const struct request *request, enum reply_kind kind,
                      const struct reply *reply)
{
    return reply->kind == kind &&
           (kind != REPLY_ROOF || (reply->roof.kind.index == request->kind &&
                                   reply->roof.condition == (int64_t)request->condition));
}

/* A worker that answers something else would also answer the next request with what was due here:
 * it is as good as gone. */
enum status executor_ask(struct executor *executor, const struct request *request,
                         enum reply_kind kind, double timeout, struct reply *reply,
                         struct error *error)
{
    char *line = NULL;
    enum worker_event event;
    struct pollfd descriptors[2];
    if (!executor->client)
        return error_set(error, STATUS_DEVICE, "there is no worker");
    send_request(executor, request, timeout);
    while ((event = worker_client_step(executor->client, &line, error)) == WORKER_QUIET) {
        worker_client_poll(executor->client, descriptors);
        poll(descriptors, 2, 100);
    }
    if (event == WORKER_LOST) {
        error_prefix(error, "%s", executor->kind->worker);
        drop_worker(executor);
        return STATUS_DEVICE;
    }
    enum status status = reply_decode(line, reply, error);
    free(line);
    if (status) {
        error_prefix(error, "%s", executor->kind->worker);
        status = STATUS_DEVICE;
    } else if (reply->kind == REPLY_ERROR) {
        *error = reply->error;
        status = reply->status;
    } else if (!is_answer(request, kind, reply)) {
        status = error_set(error, STATUS_DEVICE, "%s: %s", executor->kind->worker, out_of_turn);
    }
    if (status == STATUS_DEVICE)
        drop_worker(executor);
    return status;
}

/* One visible device is this rank's whatever its number; of several it takes the one of its number
 * on the node. Anything else would put two ranks on one device without a word. */
static enum status choose_index(const struct executor *executor, int64_t count, int64_t *index,
                                struct error *error)
{
    const struct binding *binding = &executor->settings.binding;
    *index = count == 1 ? 0 : binding->local_rank;
    if (*index < count)
        return STATUS_OK;
    return error_set(error, STATUS_USAGE,
                     "rank %d of %d on this node has no %s of its own: %lld are visible; start at "
                     "most %lld ranks per node (srun --ntasks-per-node=%lld, mpirun --map-by "
                     "ppr:%lld:node)",
                     binding->local_rank, binding->local_count, executor->kind->noun,
                     (long long)count, (long long)count, (long long)count, (long long)count);
}

static enum status open_kind(struct executor *executor, const struct device_kind *kind,
                             struct error *error)
{
    struct reply reply;
    struct request request = request_default(REQUEST_DEVICES);
    reply_init(&reply);
    executor->kind = kind;
    enum status status = start_worker(executor, error);
    if (status == STATUS_OK)
        status = executor_ask(executor, &request, REPLY_DEVICES, open_timeout, &reply, error);
    if (status == STATUS_OK && kind->numbered)
        status = choose_index(executor, reply.count, &request.index, error);
    request.op = REQUEST_DESCRIBE;
    request.measure.counters = executor->settings.counters;
    if (status == STATUS_OK)
        status = executor_ask(executor, &request, REPLY_DEVICE, open_timeout, &reply, error);
    if (status == STATUS_OK) {
        executor->device = reply.device;
        executor->device.index = request.index;
        executor->device.cores_shared = executor->settings.binding.shared;
    } else {
        drop_worker(executor);
    }
    reply_clear(&reply);
    return status;
}

enum status executor_open(struct executor *executor, struct error *error)
{
    const struct device_kind *chosen = executor->settings.device;
    char reasons[sizeof executor->choice] = "";
    for (int i = 0; i < DEVICE_KINDS; ++i) {
        const struct device_kind *kind = &device_kinds[i];
        if (chosen && chosen != kind)
            continue;
        enum status status = open_kind(executor, kind, error);
        if (status == STATUS_OK) {
            snprintf(executor->choice, sizeof executor->choice, "%s%.1180s", executor->device.kind,
                     reasons);
            return STATUS_OK;
        }
        /* Too many ranks for the devices is for the user to mend, not a reason to measure something
         * else. */
        if (status == STATUS_USAGE)
            break;
        size_t used = strlen(reasons);
        snprintf(reasons + used, sizeof reasons - used, ", because no %s can be used: %s",
                 kind->noun, error->text);
    }
    return STATUS_DEVICE;
}

static void write_home(struct executor *executor, enum letter_kind kind, const char *text)
{
    struct error error;
    if (mailbox_send(executor->mailbox, 0, kind, text, &error)) {
        log_print(executor->log, LOG_WARNING, "%s", error.text);
        abort(); /* without memory for a letter, rank 0 would wait for ever */
    }
}

static struct request describe_again(const struct executor *executor)
{
    struct request describe = request_default(REQUEST_DESCRIBE);
    describe.index = executor->device.index;
    describe.measure.counters = COUNTERS_OFF; /* the first worker tried them */
    return describe;
}

static void attempt_failed(struct executor *executor, const char *why);

/* Sends the stage's request, through a new worker if the last one is gone. */
static void attempt(struct executor *executor)
{
    struct error error;
    if (executor->client) {
        worker_client_send(executor->client, executor->request, executor->settings.timeout);
        return;
    }
    executor->reopening = true;
    if (start_worker(executor, &error)) {
        attempt_failed(executor, error.text);
        return;
    }
    struct request describe = describe_again(executor);
    send_request(executor, &describe, open_timeout);
}

static void lose(struct executor *executor, const char *why)
{
    char text[1400];
    snprintf(text, sizeof text, "%s on %s: %s", executor->device.uuid, executor->device.hostname,
             why);
    executor->stage = STAGE_LOST;
    write_home(executor, LETTER_LOST, text);
}

static void deliver(struct executor *executor, struct record *record)
{
    snprintf(record->device_key, sizeof record->device_key, "%s", executor->settings.device_key);
    snprintf(record->job_id, sizeof record->job_id, "%s", session_job_id());
    record->attempts = executor->attempts;
    json_t *object = record_encode(record);
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    executor->stage = STAGE_IDLE;
    write_home(executor, LETTER_RECORD, text ? text : "");
    free(text);
}

static void deliver_failure(struct executor *executor, const char *why)
{
    struct request request;
    struct record record;
    struct error error;
    record_init(&record);
    if (request_decode(executor->request, &request, &error) == STATUS_OK)
        record_set_config(&record, &request.config);
    record.status = RECORD_FAILED;
    record.start_time = clock_epoch();
    snprintf(record.error, sizeof record.error, "%s", why);
    deliver(executor, &record);
    record_clear(&record);
}

static void attempt_failed(struct executor *executor, const char *why)
{
    drop_worker(executor);
    if (executor->reopening && ++executor->reopened >= reopen_most) {
        lose(executor, why);
        return;
    }
    if (!executor->reopening) {
        log_print(executor->log, LOG_WARNING, "%s (attempt %d of %d)", why, executor->attempts,
                  executor->settings.retries + 1);
        if (executor->attempts > executor->settings.retries) {
            deliver_failure(executor, why);
            return;
        }
        ++executor->attempts;
    }
    attempt(executor);
}

static bool is_same_device(const struct executor *executor, const struct device *device,
                           struct error *error)
{
    if (strcmp(device->uuid, executor->device.uuid) == 0)
        return true;
    error_set(error, STATUS_DEVICE, "the device is now '%.90s'", device->uuid);
    return false;
}

enum status executor_reopen(struct executor *executor, struct error *error)
{
    struct request describe = describe_again(executor);
    struct reply reply;
    reply_init(&reply);
    drop_worker(executor);
    enum status status = start_worker(executor, error);
    if (status == STATUS_OK)
        status = executor_ask(executor, &describe, REPLY_DEVICE, open_timeout, &reply, error);
    if (status == STATUS_OK && !is_same_device(executor, &reply.device, error))
        status = STATUS_DEVICE;
    if (status) {
        drop_worker(executor);
        snprintf(executor->lost, sizeof executor->lost, "%.1000s", error->text);
    }
    reply_clear(&reply);
    return status;
}

void executor_set_roofs(struct executor *executor, const struct device *device)
{
    struct device *own = &executor->device;
    memcpy(own->roofs, device->roofs, sizeof own->roofs);
    own->roof_count = device->roof_count;
    memcpy(own->roofs_reused, device->roofs_reused, sizeof own->roofs_reused);
    device_set_peaks(own);
}

void executor_start(struct executor *executor)
{
    struct device *device = &executor->device;
    if (executor->lost[0]) {
        lose(executor, executor->lost);
        return;
    }
    snprintf(device->key, sizeof device->key, "%s", executor->settings.device_key);
    json_t *object = device_encode(device);
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    executor->stage = STAGE_IDLE;
    write_home(executor, LETTER_DEVICE, text ? text : "");
    free(text);
}

static void begin(struct executor *executor, char *request)
{
    free(executor->request);
    executor->request = request;
    executor->stage = STAGE_MEASURING;
    executor->attempts = 1;
    executor->reopened = 0;
    attempt(executor);
}

static void handle_reopened(struct executor *executor, const struct reply *reply)
{
    struct error why;
    if (reply->kind == REPLY_DEVICE && is_same_device(executor, &reply->device, &why)) {
        executor->reopening = false;
        executor->reopened = 0;
        attempt(executor);
        return;
    }
    if (reply->kind == REPLY_ERROR)
        why = reply->error;
    else if (reply->kind != REPLY_DEVICE)
        error_set(&why, STATUS_SYSTEM, "%s", out_of_turn);
    attempt_failed(executor, why.text);
}

static bool is_requested(const struct executor *executor, const struct record *record)
{
    struct request request;
    struct error error;
    char text[WORKLOAD_TEXT];
    if (request_decode(executor->request, &request, &error))
        return false;
    config_format(&request.config, text);
    return strcmp(text, record->configuration) == 0;
}

static void handle_record(struct executor *executor, struct reply *reply)
{
    if (reply->kind == REPLY_RECORD && is_requested(executor, &reply->record))
        deliver(executor, &reply->record);
    else if (reply->kind == REPLY_ERROR && reply->status != STATUS_DEVICE)
        deliver_failure(executor, reply->error.text);
    else
        attempt_failed(executor, reply->kind == REPLY_ERROR ? reply->error.text : out_of_turn);
}

static void handle_line(struct executor *executor, const char *line)
{
    struct reply reply;
    struct error error;
    reply_init(&reply);
    if (reply_decode(line, &reply, &error)) {
        error_prefix(&error, "%s", executor->kind->worker);
        attempt_failed(executor, error.text);
    } else if (executor->reopening) {
        handle_reopened(executor, &reply);
    } else {
        handle_record(executor, &reply);
    }
    reply_clear(&reply);
}

void executor_step(struct executor *executor)
{
    char *line = NULL;
    struct error why;
    if (!executor->client || executor->stage == STAGE_STOPPED)
        return;
    enum worker_event event = worker_client_step(executor->client, &line, &why);
    if (event == WORKER_QUIET)
        return;
    if (executor->stage == STAGE_IDLE) { /* it ended, or said what nobody asked */
        drop_worker(executor);           /* the next work starts a new one */
    } else if (event == WORKER_LINE) {
        handle_line(executor, line);
    } else {
        attempt_failed(executor, why.text);
    }
    free(line);
}

void executor_handle(struct executor *executor, const struct letter *letter)
{
    if (letter->kind == LETTER_STOP) {
        drop_worker(executor);
        executor->stage = STAGE_STOPPED;
        write_home(executor, LETTER_BYE, "");
        return;
    }
    char *request = strdup(letter->text);
    if (request)
        begin(executor, request);
    else
        lose(executor, "no memory");
}

void executor_poll(const struct executor *executor, struct pollfd descriptors[2], nfds_t *count)
{
    *count = executor->client ? 2 : 0;
    if (executor->client)
        worker_client_poll(executor->client, descriptors);
}
