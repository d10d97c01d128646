/* A rank's device and worker: a state machine (enum stage) over one worker process.
 *
 * Set-up: executor_open tries the kinds of devices in order, up to three workers each. A GPU that
 * reports its health gets a second process, the watcher, which outlives workers. Failure: a lost
 * worker is replaced by one with the same device, and the row is tried again, alone, up to
 * `retries` times; then rank 0 gets a failed record. If no worker opens the device, rank 0 gets
 * MESSAGE_DEVICE_LOST. Timed rows in a lost worker go back to rank 0. A worker that a signal ends
 * yields no record. Cost: the functions under "the device" in executor.h wait; those under "the
 * loop" return at once. A record is decoded once, to check it, and passed on as text. */
#include "ranks/executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ranks/signals.h"

/* Number of workers in a row that may fail to open the device. */
static const int open_tries_max = 3;
/* Limits for opening a device, in units of open_timeout. Another worker may start until open_span
 * after the first one. The two requests of a worker may take open_requests. */
static const double open_span = 1.5, open_requests = 2;
/* s; limit of a request for the health. Rank 0 waits longer for a rank's end. */
static const double health_timeout = 4;
static const char unexpected_reply[] = "the worker's answer is about something else";

enum stage {
    STAGE_OPENING,   /* before the sweep: device and roofs */
    STAGE_IDLE,      /* waits for a message; timed rows may wait in the worker */
    STAGE_MEASURING, /* the worker measures a configuration */
    STAGE_COUNTING,  /* the worker counts the rows that wait */
    STAGE_LOST,      /* device lost, or worker ended by a signal; waits for the end */
    STAGE_ENDING,    /* the watcher reports the health */
    STAGE_STOPPED
};

struct executor {
    struct executor_settings settings;
    struct sender sender;
    const struct log *log;
    enum stage stage;
    struct worker_process *worker; /* NULL: none */
    /* Reports the device's health at the end. Outlives workers, so that it sees the error of the
     * driver (XID) that ended a worker. NULL: no health. */
    struct worker_process *watcher;
    const struct device_kind *kind;
    struct device device;
    struct link_list links;                        /* owned */
    char opened[sizeof((struct device *)0)->uuid]; /* UUID as the worker reports it */
    char reason[1200];
    char lost[1024];                   /* reason for the loss of the device; "": not lost */
    bool loss_pending;                 /* loss not yet reported to rank 0 */
    bool reopening;                    /* a new worker has not yet described the device */
    int open_tries;                    /* workers in a row that could not open the device */
    double open_start;                 /* s, CLOCK_MONOTONIC: start of the first try */
    bool worker_lost;                  /* the last executor_call got no answer */
    bool worker_hung;                  /* the last executor_call timed out */
    char *request;                     /* owned: line for the worker */
    char configuration[WORKLOAD_TEXT]; /* canonical text */
    char row[WORKLOAD_TEXT];           /* the row's name */
    int attempts;
    double round;                   /* round of the request; the worker is new in each round */
    char (*waiting)[WORKLOAD_TEXT]; /* owned: timed configurations in the worker, oldest first */
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
    executor->round = 1;
    return executor;
}

void executor_destroy(struct executor *executor)
{
    if (!executor)
        return;
    worker_process_destroy(executor->worker);
    worker_process_destroy(executor->watcher);
    link_list_clear(&executor->links);
    free(executor->waiting);
    free(executor->request);
    free(executor);
}

static double open_timeout_of_kind(const struct executor_settings *settings)
{
    return (open_span + open_requests) * settings->open_timeout;
}

double executor_opening(const struct executor_settings *settings)
{
    return DEVICE_KINDS * open_timeout_of_kind(settings);
}

double executor_longest(const struct executor_settings *settings)
{
    return (settings->retries + 1) * (settings->timeout + open_timeout_of_kind(settings));
}

const struct device *executor_device(const struct executor *executor)
{
    return &executor->device;
}

const struct device_kind *executor_kind(const struct executor *executor)
{
    return executor->kind;
}

const char *executor_reason(const struct executor *executor)
{
    return executor->reason;
}

const char *executor_lost(const struct executor *executor)
{
    return executor->lost[0] ? executor->lost : NULL;
}

struct link_list *executor_links(struct executor *executor)
{
    return &executor->links;
}

void executor_name_device(struct executor *executor, const char *uuid)
{
    snprintf(executor->device.uuid, sizeof executor->device.uuid, "%s", uuid);
}

void executor_set_roofs(struct executor *executor, const struct device *device)
{
    struct device *own = &executor->device;
    memcpy(own->roofs, device->roofs, sizeof own->roofs);
    own->roof_count = device->roof_count;
    memcpy(own->roofs_reused, device->roofs_reused, sizeof own->roofs_reused);
    own->counters = device->counters;
    device_set_peaks(own);
}

/* ---- the worker ---- */

/* `watched`: address for --watch; NULL: a measuring worker. */
static enum status start_worker(const struct executor *executor, const char *watched,
                                struct worker_process **worker, struct error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", executor->settings.worker_folder, executor->kind->worker);
    /* GPU workers are bound, too: they compute references on all their cores, and threads of
     * several ranks would spin against each other. */
    return worker_process_start(path, watched, &executor->settings.binding.cpus,
                                executor->log->level >= LOG_DEBUG ? executor->log->stream : NULL,
                                worker, error);
}

static void send_request(struct worker_process *worker, const struct request *request,
                         double timeout)
{
    char *line = request_encode(request);
    if (line)
        worker_process_send(worker, line, timeout);
    free(line);
}

static void stop_worker(struct executor *executor)
{
    worker_process_destroy(executor->worker);
    executor->worker = NULL;
}

/* STATUS_OK: the line is the reply to the request. Returns the status of an error reply. */
static enum status read_reply(const struct executor *executor, const struct request *request,
                              enum reply_kind kind, const char *line, struct reply *reply,
                              struct error *error)
{
    if (reply_decode(line, reply, error))
        return error_prefix(error, STATUS_DEVICE, "%s", executor->kind->worker);
    if (reply->kind == REPLY_ERROR) {
        *error = reply->error;
        return reply->status;
    }
    if (reply->kind != kind ||
        (kind == REPLY_ROOF && (reply->roof.kind.index != request->kind ||
                                reply->roof.condition != (int64_t)request->condition)))
        return error_set(error, STATUS_DEVICE, "%s: %s", executor->kind->worker, unexpected_reply);
    if (kind == REPLY_ROOF && device_check_roof(&executor->device, &reply->roof, error))
        return error_prefix(error, STATUS_DEVICE, "%s", executor->kind->worker);
    return STATUS_OK;
}

static bool is_interrupted(const struct executor *executor)
{
    return executor->settings.interrupted && *executor->settings.interrupted;
}

static void wait_for(const struct worker_process *worker)
{
    struct pollfd descriptors[2];
    worker_process_poll(worker, descriptors);
    poll(descriptors, 2, 100);
}

/* Sends a request and waits for its reply. Without a right reply, ends the worker and sets *worker
 * to NULL, because the next line could still answer this request. */
static enum status call(struct executor *executor, struct worker_process **worker,
                        const struct request *request, enum reply_kind kind, double timeout,
                        struct reply *reply, struct error *error)
{
    char *line = NULL;
    enum worker_event event;
    enum status status = STATUS_DEVICE;
    double start = clock_monotonic();
    send_request(*worker, request, timeout);
    while ((event = worker_process_step(*worker, &line, error)) == WORKER_QUIET &&
           !is_interrupted(executor))
        wait_for(*worker);
    if (event == WORKER_LINE)
        status = read_reply(executor, request, kind, line, reply, error);
    else if (event == WORKER_QUIET)
        status = error_set(error, STATUS_INTERRUPTED, "%s",
                           signals_text(*executor->settings.interrupted));
    else
        error_prefix(error, status, "%s", executor->kind->worker);
    free(line);
    executor->worker_lost = event == WORKER_LOST || event == WORKER_SIGNALLED;
    executor->worker_hung = event == WORKER_LOST && clock_monotonic() - start >= timeout;
    if (status == STATUS_DEVICE || status == STATUS_INTERRUPTED) {
        worker_process_destroy(*worker);
        *worker = NULL;
    }
    return status;
}

enum status executor_call(struct executor *executor, const struct request *request,
                          enum reply_kind kind, double timeout, struct reply *reply,
                          struct error *error)
{
    if (!executor->worker)
        return error_set(error, STATUS_DEVICE, "there is no worker");
    return call(executor, &executor->worker, request, kind, timeout, reply, error);
}

enum status executor_call_links(struct executor *executor, struct worker_process **separate,
                                const struct request *request, double timeout, struct reply *reply,
                                struct error *error)
{
    reply_init(reply);
    if (!*separate)
        TRY(start_worker(executor, NULL, separate, error));
    return call(executor, separate, request, REPLY_LINKS, timeout, reply, error);
}

/* ---- opening ---- */

struct visible executor_visible(struct executor *executor)
{
    const struct executor_settings *settings = &executor->settings;
    const struct request request = request_default(REQUEST_DEVICES);
    struct reply reply;
    struct error unused;
    reply_init(&reply);
    for (int i = 0; i < DEVICE_KINDS && reply.visible.count == 0; ++i) {
        const struct device_kind *kind = executor->kind = &device_kinds[i];
        if (!kind->numbered || (settings->device && settings->device != kind) ||
            start_worker(executor, NULL, &executor->worker, &unused))
            continue;
        if (executor_call(executor, &request, REPLY_DEVICES, settings->open_timeout, &reply,
                          &unused))
            stop_worker(executor);
    }
    return reply.visible;
}

void executor_bind(struct executor *executor, const struct binding *binding)
{
    if (!CPU_EQUAL_S(sizeof binding->cpus, executor->settings.binding.cpus.part,
                     binding->cpus.part))
        stop_worker(executor); /* the worker's libraries have already counted the cores */
    executor->settings.binding = *binding;
}

/* Takes the only visible device, or the device of the binding. Any other choice could put two ranks
 * on one device. */
static enum status choose_index(const struct executor *executor, int64_t count, int64_t *index,
                                struct error *error)
{
    const struct binding *binding = &executor->settings.binding;
    const int most = binding->devices > 0 ? binding->devices : (int)count;
    *index = count == 1 ? 0 : binding->device;
    if (*index < count)
        return STATUS_OK;
    return error_set(
        error, STATUS_USAGE,
        "rank %d of %d on this node has no %s of its own: it sees %d, which others have; "
        "start at most %d ranks per node, each with one (srun --ntasks-per-node=%d "
        "--gpus-per-task=1, mpirun --map-by ppr:%d:node)",
        binding->local_rank, binding->local_count, executor->kind->noun, (int)count, most, most,
        most);
}

/* Tries one worker. Sets *answered once the worker has counted its devices. */
static enum status try_kind(struct executor *executor, const struct device_kind *kind,
                            bool *answered, struct error *error)
{
    const double timeout = executor->settings.open_timeout;
    struct reply reply;
    struct request request = request_default(REQUEST_DEVICES);
    reply_init(&reply);
    if (executor->kind != kind)
        stop_worker(executor); /* executor_visible has left it running */
    executor->kind = kind;
    executor->worker_lost = executor->worker_hung = false;
    enum status status =
        executor->worker ? STATUS_OK : start_worker(executor, NULL, &executor->worker, error);
    if (status == STATUS_OK)
        status = executor_call(executor, &request, REPLY_DEVICES, timeout, &reply, error);
    *answered |= status == STATUS_OK;
    if (status == STATUS_OK && kind->numbered)
        status = choose_index(executor, reply.count, &request.index, error);
    executor->device.index = request.index;
    request.op = REQUEST_DESCRIBE;
    request.measure.counters =
        executor->settings.require_counters ? COUNTERS_REQUIRE : COUNTERS_OFF;
    if (status == STATUS_OK)
        status = executor_call(executor, &request, REPLY_DEVICE, timeout, &reply, error);
    if (status == STATUS_OK && strcmp(reply.device.kind, kind->name) != 0)
        status = error_set(error, STATUS_DEVICE, "%s describes a device of kind '%s'", kind->worker,
                           reply.device.kind);
    if (status == STATUS_OK) {
        executor->device = reply.device;
        executor->device.index = request.index;
        memcpy(executor->opened, reply.device.uuid, sizeof executor->opened);
        if (!kind->numbered)
            executor->device.cores_shared = executor->settings.binding.shared;
        else
            executor->device.cores_far = executor->settings.binding.far;
        if (!executor->watcher && device_has_health(&executor->device) &&
            start_worker(executor, reply.device.pci_id, &executor->watcher, error))
            log_print(executor->log, LOG_WARNING, "no health at the end: %s", error->text);
    } else {
        stop_worker(executor);
    }
    reply_clear(&reply);
    return status;
}

static void reset_retries(struct executor *executor)
{
    executor->open_tries = 0;
    executor->open_start = clock_monotonic();
}

/* Counts a failed worker. False: no further try. */
static bool may_retry(struct executor *executor)
{
    double span = open_span * executor->settings.open_timeout;
    return ++executor->open_tries < open_tries_max &&
           clock_monotonic() - executor->open_start < span;
}

static void set_lost_device(struct executor *executor, const char *why)
{
    struct device *device = &executor->device;
    int64_t index = device->index;
    device_init(device);
    device->index = index;
    snprintf(device->kind, sizeof device->kind, "%s", executor->kind->name);
    if (gethostname(device->hostname, sizeof device->hostname - 1) != 0)
        device->hostname[0] = '\0';
    snprintf(executor->reason, sizeof executor->reason, "%s", executor->kind->name);
    snprintf(executor->lost, sizeof executor->lost, "%.1000s", why);
}

enum status executor_open(struct executor *executor, struct error *error)
{
    const struct device_kind *chosen = executor->settings.device;
    char reasons[sizeof executor->reason] = "";
    for (int i = 0; i < DEVICE_KINDS; ++i) {
        const struct device_kind *kind = &device_kinds[i];
        enum status status;
        bool answered = false;
        if (chosen && chosen != kind)
            continue;
        reset_retries(executor);
        do
            status = try_kind(executor, kind, &answered, error);
        while (status == STATUS_DEVICE && executor->worker_lost && may_retry(executor));
        if (status == STATUS_OK) {
            snprintf(executor->reason, sizeof executor->reason, "%s%.1180s", kind->name, reasons);
            return STATUS_OK;
        }
        /* A worker that ends before it counts its devices may be a user's mistake, so the next kind
         * follows. A hang or a later loss is the device's fault. */
        if (executor->worker_lost && (answered || executor->worker_hung)) {
            set_lost_device(executor, error->text);
            return STATUS_OK;
        }
        if (status == STATUS_INTERRUPTED)
            return status;
        /* Too many ranks are a user's mistake, so no other kind of device is tried. */
        if (status == STATUS_USAGE)
            break;
        if (chosen && chosen->accelerator)
            return error_append(error, STATUS_DEVICE, "; --device %s, or auto, measures the %s",
                                device_kinds[DEVICE_KINDS - 1].name,
                                device_kinds[DEVICE_KINDS - 1].noun);
        size_t used = strlen(reasons);
        snprintf(reasons + used, sizeof reasons - used, ", because no %s can be used: %s",
                 kind->noun, error->text);
    }
    return STATUS_DEVICE;
}

/* ---- replacing a worker ---- */

static void lose_device(struct executor *executor, const char *why)
{
    executor->reopening = false;
    executor->loss_pending = true;
    snprintf(executor->lost, sizeof executor->lost, "%.1000s", why);
}

static struct request describe_again(const struct executor *executor)
{
    struct request describe = request_default(REQUEST_DESCRIBE);
    describe.index = executor->device.index;
    describe.measure.counters = COUNTERS_OFF; /* the first worker tries the counters */
    return describe;
}

static enum status begin_reopening(struct executor *executor, struct error *error)
{
    struct request describe = describe_again(executor);
    enum status status = start_worker(executor, NULL, &executor->worker, error);
    if (status == STATUS_OK)
        send_request(executor->worker, &describe, executor->settings.open_timeout);
    return status;
}

static void reopen_failed(struct executor *executor, const char *why)
{
    struct error error;
    error_set(&error, STATUS_DEVICE, "%s", why);
    do {
        stop_worker(executor);
        if (!may_retry(executor)) {
            lose_device(executor, error.text);
            return;
        }
    } while (begin_reopening(executor, &error));
}

/* Replaces the lost worker: `reopening` ends with the device open or lost. */
static void replace_worker(struct executor *executor)
{
    struct error error;
    reset_retries(executor);
    executor->reopening = true;
    if (begin_reopening(executor, &error))
        reopen_failed(executor, error.text);
}

static void step_reopening(struct executor *executor)
{
    const struct request describe = describe_again(executor);
    struct reply reply;
    struct error why;
    char *line = NULL;
    enum status status = STATUS_DEVICE;
    enum worker_event event = worker_process_step(executor->worker, &line, &why);
    if (event == WORKER_QUIET)
        return;
    reply_init(&reply);
    if (event == WORKER_LINE)
        status = read_reply(executor, &describe, REPLY_DEVICE, line, &reply, &why);
    if (status == STATUS_OK && strcmp(reply.device.uuid, executor->opened) != 0)
        status = error_set(&why, STATUS_DEVICE, "the device is now '%.90s'", reply.device.uuid);
    reply_clear(&reply);
    free(line);
    if (status)
        reopen_failed(executor, why.text);
    else
        executor->reopening = false;
}

enum status executor_reopen(struct executor *executor, struct error *error)
{
    stop_worker(executor);
    replace_worker(executor);
    while (executor->reopening) {
        if (is_interrupted(executor)) {
            executor->reopening = false;
            stop_worker(executor);
            return error_set(error, STATUS_INTERRUPTED, "%s",
                             signals_text(*executor->settings.interrupted));
        }
        wait_for(executor->worker);
        step_reopening(executor);
    }
    if (!executor->loss_pending)
        return STATUS_OK;
    executor->loss_pending = false;
    return error_set(error, STATUS_DEVICE, "%s", executor->lost);
}

/* ---- messages to rank 0 ---- */

static void send_message(struct executor *executor, enum message_kind kind, const char *text)
{
    struct error error;
    if (executor->sender.send(executor->sender.context, 0, kind, text, &error)) {
        log_print(executor->log, LOG_WARNING, "%s", error.text);
        abort(); /* or rank 0 would wait for ever */
    }
}

static void send_device(struct executor *executor, enum message_kind kind)
{
    json_t *object = device_encode(&executor->device);
    link_list_encode(&executor->links, object);
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    send_message(executor, kind, text ? text : "");
    free(text);
}

/* Returns timed rows to rank 0, because they are lost with the worker. */
static void return_waiting(struct executor *executor)
{
    for (size_t i = 0; i < executor->waiting_count; ++i)
        send_message(executor, MESSAGE_RETURNED, executor->waiting[i]);
    executor->waiting_count = 0;
}

static void report_loss(struct executor *executor, const char *why)
{
    const struct device *device = &executor->device;
    char text[1600], name[160];
    if (device->uuid[0]) /* empty if the device never opened */
        snprintf(name, sizeof name, "%s", device->uuid);
    else if (executor->kind->numbered)
        snprintf(name, sizeof name, "%s %lld", executor->kind->noun, (long long)device->index);
    else
        snprintf(name, sizeof name, "%s", executor->kind->noun);
    snprintf(text, sizeof text, "%s on %s: %.1000s", name, device->hostname, why);
    return_waiting(executor);
    executor->stage = STAGE_LOST;
    send_message(executor, MESSAGE_DEVICE_LOST, text);
}

/* A signal to all processes of a job may end the worker or its program before rank 0 sees its own
 * signal. Sends no record, so that --resume measures the row. */
static void report_signal(struct executor *executor, const char *why)
{
    log_print(executor->log, LOG_WARNING, "the job is being ended: %s", why);
    stop_worker(executor);
    executor->stage = STAGE_LOST;
    send_message(executor, MESSAGE_SIGNAL, "");
}

void executor_start(struct executor *executor)
{
    struct device *device = &executor->device;
    snprintf(device->key, sizeof device->key, "%s", executor->settings.device_key);
    if (executor_lost(executor)) {
        report_loss(executor, executor_lost(executor));
        return;
    }
    executor->stage = STAGE_IDLE;
    send_device(executor, MESSAGE_DEVICE);
}

static void send_record(struct executor *executor, const char *record, int attempts)
{
    char *text = NULL;
    if (record && asprintf(&text, "%d %s", attempts, record) < 0)
        text = NULL;
    send_message(executor, MESSAGE_RECORD, text ? text : "");
    free(text);
}

static void send_failure(struct executor *executor, const char *why)
{
    struct record record;
    struct request request;
    struct error unknown;
    record_init(&record);
    if (request_decode(executor->request, &request, &unknown) == STATUS_OK)
        record_set_config(&record, &request.config);
    record.status = RECORD_FAILED;
    record.start_time = clock_date();
    snprintf(record.error, sizeof record.error, "%s", why);
    executor->stage = STAGE_IDLE;
    char *text = record_print(&record);
    send_record(executor, text, executor->attempts);
    free(text);
    record_clear(&record);
}

/* ---- rows ---- */

/* Takes over the line. */
static void set_request(struct executor *executor, char *line)
{
    if (!line)
        abort(); /* or rank 0 would wait for ever */
    free(executor->request);
    executor->request = line;
}

static void start_attempt(struct executor *executor)
{
    if (executor->worker)
        worker_process_send(executor->worker, executor->request,
                            executor->settings.timeout * (double)(1 + executor->waiting_count));
    else
        replace_worker(executor);
}

/* Retries the row alone, so that its loss costs no other row. */
static void attempt_failed(struct executor *executor, const char *why)
{
    struct request request;
    struct error unknown;
    stop_worker(executor);
    return_waiting(executor);
    log_print(executor->log, LOG_WARNING, "%s: %s (attempt %d of %d)", executor->row, why,
              executor->attempts, executor->settings.retries + 1);
    if (executor->attempts > executor->settings.retries ||
        request_decode(executor->request, &request, &unknown)) {
        send_failure(executor, why);
        return;
    }
    ++executor->attempts;
    request.count_later = false;
    algorithm_init(&request.algorithm); /* the cached algorithm may have caused the loss */
    set_request(executor, request_encode(&request));
    start_attempt(executor);
}

static void handle_timed(struct executor *executor, const char *configuration)
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

static void handle_measured(struct executor *executor, const char *line)
{
    struct reply reply;
    struct error error;
    reply_init(&reply);
    if (reply_decode(line, &reply, &error)) {
        error_prefix(&error, STATUS_DEVICE, "%s", executor->kind->worker);
        attempt_failed(executor, error.text);
    } else if (reply.kind == REPLY_RECORD &&
               strcmp(executor->configuration, reply.record.configuration) == 0) {
        executor->stage = STAGE_IDLE;
        send_record(executor, reply.record_text, executor->attempts);
    } else if (reply.kind == REPLY_TIMED &&
               strcmp(executor->configuration, reply.configuration) == 0 &&
               json_member(json_text_of(executor->request), "count_later").at) {
        handle_timed(executor, reply.configuration);
    } else if (reply.kind == REPLY_ERROR && reply.status == STATUS_INTERRUPTED) {
        report_signal(executor, reply.error.text);
    } else if (reply.kind == REPLY_ERROR && reply.status != STATUS_DEVICE) {
        send_failure(executor, reply.error.text);
    } else {
        attempt_failed(executor, reply.kind == REPLY_ERROR ? reply.error.text : unexpected_reply);
    }
    reply_clear(&reply);
}

/* ---- counting ---- */

/* Requests the record of the oldest waiting row. The first of these requests counts all rows. */
static void request_count(struct executor *executor, size_t rows)
{
    const struct request request = request_default(REQUEST_COUNT);
    executor->stage = STAGE_COUNTING;
    send_request(executor->worker, &request, executor->settings.timeout * (double)rows);
}

/* Returns all rows, because any may be the cause. Rank 0 assigns each again, alone. */
static void count_failed(struct executor *executor, const char *why)
{
    log_print(executor->log, LOG_WARNING, "counting %zu rows: %s", executor->waiting_count, why);
    stop_worker(executor);
    executor->stage = STAGE_IDLE;
    return_waiting(executor);
}

static void handle_counted(struct executor *executor, const char *line)
{
    struct reply reply;
    struct error error;
    const struct request request = request_default(REQUEST_COUNT);
    reply_init(&reply);
    enum status status = read_reply(executor, &request, REPLY_RECORD, line, &reply, &error);
    if (status == STATUS_OK && strcmp(reply.record.configuration, executor->waiting[0]) != 0)
        status = error_set(&error, STATUS_DEVICE, "%s", unexpected_reply);
    if (status) {
        count_failed(executor, error.text);
    } else {
        send_record(executor, reply.record_text, 1);
        memmove(executor->waiting, executor->waiting + 1,
                --executor->waiting_count * sizeof *executor->waiting);
        if (executor->waiting_count > 0)
            request_count(executor, 1);
        else
            executor->stage = STAGE_IDLE;
    }
    reply_clear(&reply);
}

/* ---- the end ---- */

/* `line`: the watcher's reply; NULL: none, for the reason `why`. Both NULL: there is no watcher. */
static void send_finished(struct executor *executor, const char *line, const char *why)
{
    const struct request describe = describe_again(executor);
    struct device *device = &executor->device;
    struct reply reply;
    struct error unheard;
    reply_init(&reply);
    if (line &&
        read_reply(executor, &describe, REPLY_DEVICE, line, &reply, &unheard) == STATUS_OK) {
        memcpy(device->health_end, reply.device.health_end, sizeof device->health_end);
        send_device(executor, MESSAGE_HEALTH);
    } else if (line || why) {
        log_print(executor->log, LOG_WARNING, "no health at the end: %s",
                  line ? unheard.text : why);
    }
    reply_clear(&reply);
    stop_worker(executor);
    worker_process_destroy(executor->watcher);
    executor->watcher = NULL;
    executor->stage = STAGE_STOPPED;
    send_message(executor, MESSAGE_FINISHED, "");
}

/* Begins the end, without waiting for a busy worker. */
static void begin_end(struct executor *executor)
{
    const struct request describe = describe_again(executor);
    if (!executor->watcher) {
        send_finished(executor, NULL, NULL);
        return;
    }
    executor->reopening = executor->loss_pending = false;
    executor->stage = STAGE_ENDING;
    send_request(executor->watcher, &describe, health_timeout);
}

/* ---- events ---- */

static struct worker_process *active_process(const struct executor *executor)
{
    return executor->stage == STAGE_ENDING ? executor->watcher : executor->worker;
}

/* `line`: the worker's reply; NULL: the worker is lost, for the reason `why`. */
static void handle_event(struct executor *executor, const char *line, const char *why)
{
    if (executor->stage == STAGE_MEASURING && line) {
        handle_measured(executor, line);
    } else if (executor->stage == STAGE_MEASURING) {
        attempt_failed(executor, why);
    } else if (executor->stage == STAGE_COUNTING && line) {
        handle_counted(executor, line);
    } else if (executor->stage == STAGE_COUNTING) {
        count_failed(executor, why);
    } else if (executor->stage == STAGE_ENDING) {
        send_finished(executor, line, why);
    } else { /* idle: the next configuration starts a new worker */
        stop_worker(executor);
        return_waiting(executor);
    }
}

void executor_step(struct executor *executor)
{
    if (executor->stage == STAGE_STOPPED)
        return;
    if (executor->reopening) {
        step_reopening(executor);
        if (!executor->reopening && !executor->loss_pending)
            start_attempt(executor);
    } else if (active_process(executor) && !executor->loss_pending) {
        struct error why;
        char *line = NULL;
        enum worker_event event = worker_process_step(active_process(executor), &line, &why);
        if (event == WORKER_SIGNALLED && executor_works(executor))
            report_signal(executor, why.text);
        else if (event != WORKER_QUIET)
            handle_event(executor, event == WORKER_LINE ? line : NULL, why.text);
        free(line);
    }
    if (executor->loss_pending) {
        executor->loss_pending = false;
        report_loss(executor, executor->lost);
    }
}

bool executor_stopped(const struct executor *executor)
{
    return executor->stage == STAGE_STOPPED;
}

bool executor_works(const struct executor *executor)
{
    return executor->stage == STAGE_MEASURING || executor->stage == STAGE_COUNTING;
}

static void handle_work(struct executor *executor, const char *text)
{
    struct json_text work = json_text_of(text);
    set_request(executor, strdup(text));
    if (!json_text_string(json_member(work, "configuration"), executor->configuration,
                          sizeof executor->configuration) ||
        !json_text_string(json_member(work, "row"), executor->row, sizeof executor->row)) {
        stop_worker(executor);
        lose_device(executor, "rank 0 sent a request without a configuration or the row's name");
        return;
    }
    double round = 1;
    json_text_number(json_member(work, "round"), &round);
    if (round != executor->round)
        stop_worker(executor);
    executor->round = round;
    executor->stage = STAGE_MEASURING;
    executor->attempts = 1;
    start_attempt(executor);
}

void executor_handle(struct executor *executor, const struct message *message)
{
    if (message->kind == MESSAGE_STOP) {
        begin_end(executor);
    } else if (message->kind == MESSAGE_MEASURE) {
        handle_work(executor, message->text);
    } else if (executor->stage == STAGE_IDLE &&
               /* If the rows were returned before, the message has no effect. */
               executor->waiting_count > 0) {
        request_count(executor, executor->waiting_count);
    }
}

void executor_poll(const struct executor *executor, struct pollfd descriptors[2], nfds_t *count)
{
    *count = active_process(executor) ? 2 : 0;
    if (active_process(executor))
        worker_process_poll(active_process(executor), descriptors);
}
