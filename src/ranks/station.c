#include "ranks/station.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ranks/signals.h"

/* Workers that may fail to open the device one after the other before it counts as lost. */
static const int tries_most = 3;
/* No worker is started for that later than so many open_timeouts after the first one, and each gets one
 * open_timeout for each of its two requests. */
static const double tries_span = 1.5, requests_of_try = 2;
const char station_out_of_turn[] = "the worker's answer is about something else";

struct station {
    struct station_settings settings;
    const struct log *log;
    struct worker_client *client; /* NULL: there is no worker */
    const struct device_kind *kind;
    struct device device;
    char opened[sizeof((struct device *)0)->uuid]; /* its UUID, as the worker says it */
    char choice[1200];
    char lost[1024];    /* why there is no device any more; "": there is one */
    bool reopening;     /* a new worker has been asked for the device, and has not answered */
    bool loss_untold;   /* by station_step */
    int tries;          /* workers in a row that could not open it */
    double tries_start; /* s, CLOCK_MONOTONIC: the first of them */
    bool worker_lost;   /* over the last request of station_ask: it gave no answer */
    bool worker_hung;   /* that is, it took too long */
};

struct station *station_create(const struct station_settings *settings, const struct log *log)
{
    struct station *station = calloc(1, sizeof *station);
    if (!station)
        return NULL;
    station->settings = *settings;
    station->log = log;
    return station;
}

void station_destroy(struct station *station)
{
    if (!station)
        return;
    worker_client_destroy(station->client);
    free(station);
}

struct device *station_device(struct station *station)
{
    return &station->device;
}

const struct device_kind *station_kind(const struct station *station)
{
    return station->kind;
}

const char *station_choice(const struct station *station)
{
    return station->choice;
}

const char *station_lost(const struct station *station)
{
    return station->lost[0] ? station->lost : NULL;
}

bool station_has_worker(const struct station *station)
{
    return station->client;
}

/* ---- one worker ---- */

static enum status start_worker(struct station *station, struct error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", station->settings.worker_folder, station->kind->worker);
    /* A GPU's worker, too, keeps to its share of the cores: its reference runs on all of them, and
     * those of several ranks would spin against each other. */
    return worker_client_start(path, &station->settings.binding.cpus,
                               station->log->level >= LOG_DEBUG ? STDERR_FILENO : -1,
                               &station->client, error);
}

void station_send(struct station *station, const struct request *request, double timeout)
{
    char *line = request_encode(request);
    if (line)
        worker_client_send(station->client, line, timeout);
    free(line);
}

void station_drop(struct station *station)
{
    worker_client_destroy(station->client);
    station->client = NULL;
}

static bool is_answer(const struct request *request, enum reply_kind kind,
                      const struct reply *reply)
{
    return reply->kind == kind &&
           (kind != REPLY_ROOF || (reply->roof.kind.index == request->kind &&
                                   reply->roof.condition == (int64_t)request->condition));
}

/* What the worker's line says to this request: STATUS_OK if it is the reply that is due. */
enum status station_read(const struct station *station, const struct request *request,
                         enum reply_kind kind, const char *line, struct reply *reply,
                         struct error *error)
{
    if (reply_decode(line, reply, error)) {
        error_prefix(error, "%s", station->kind->worker);
        return STATUS_DEVICE;
    }
    if (reply->kind == REPLY_ERROR) {
        *error = reply->error;
        return reply->status;
    }
    if (is_answer(request, kind, reply))
        return STATUS_OK;
    return error_set(error, STATUS_DEVICE, "%s: %s", station->kind->worker, station_out_of_turn);
}

static bool is_interrupted(const struct station *station)
{
    return station->settings.interrupted && *station->settings.interrupted;
}

static void wait_for_worker(const struct station *station)
{
    struct pollfd descriptors[2];
    worker_client_poll(station->client, descriptors);
    poll(descriptors, 2, 100);
}

/* A worker that answers something else is out of step: its next line may be the answer to this
 * request. So it is ended. */
enum status station_ask(struct station *station, const struct request *request,
                        enum reply_kind kind, double timeout, struct reply *reply,
                        struct error *error)
{
    char *line = NULL;
    enum worker_event event;
    enum status status = STATUS_DEVICE;
    double start = clock_monotonic();
    if (!station->client)
        return error_set(error, STATUS_DEVICE, "there is no worker");
    station_send(station, request, timeout);
    while ((event = worker_client_step(station->client, &line, error)) == WORKER_QUIET &&
           !is_interrupted(station))
        wait_for_worker(station);
    if (event == WORKER_LINE)
        status = station_read(station, request, kind, line, reply, error);
    else if (event == WORKER_QUIET)
        status = error_set(error, STATUS_INTERRUPTED, "%s",
                           signals_text(*station->settings.interrupted));
    else
        error_prefix(error, "%s", station->kind->worker);
    free(line);
    station->worker_lost = event == WORKER_LOST;
    station->worker_hung = event == WORKER_LOST && clock_monotonic() - start >= timeout;
    if (status == STATUS_DEVICE || status == STATUS_INTERRUPTED)
        station_drop(station);
    return status;
}

/* ---- opening ---- */

/* One visible device is this rank's whatever its number; of several it takes the one of its number
 * on the node. Anything else would put two ranks on one device without a word. */
static enum status choose_index(const struct station *station, int64_t count, int64_t *index,
                                struct error *error)
{
    const struct binding *binding = &station->settings.binding;
    *index = count == 1 ? 0 : binding->local_rank;
    if (*index < count)
        return STATUS_OK;
    return error_set(error, STATUS_USAGE,
                     "rank %d of %d on this node has no %s of its own: %lld are visible; start at "
                     "most %lld ranks per node (srun --ntasks-per-node=%lld, mpirun --map-by "
                     "ppr:%lld:node)",
                     binding->local_rank, binding->local_count, station->kind->noun,
                     (long long)count, (long long)count, (long long)count, (long long)count);
}

/* One worker's try. *answered is set once it has said how many devices there are. */
static enum status try_kind(struct station *station, const struct device_kind *kind, bool *answered,
                            struct error *error)
{
    const double timeout = station->settings.open_timeout;
    struct reply reply;
    struct request request = request_default(REQUEST_DEVICES);
    reply_init(&reply);
    station->kind = kind;
    station->worker_lost = station->worker_hung = false;
    enum status status = start_worker(station, error);
    if (status == STATUS_OK)
        status = station_ask(station, &request, REPLY_DEVICES, timeout, &reply, error);
    *answered |= status == STATUS_OK;
    if (status == STATUS_OK && kind->numbered)
        status = choose_index(station, reply.count, &request.index, error);
    station->device.index = request.index;
    request.op = REQUEST_DESCRIBE;
    request.measure.counters = station->settings.counters;
    if (status == STATUS_OK)
        status = station_ask(station, &request, REPLY_DEVICE, timeout, &reply, error);
    if (status == STATUS_OK && strcmp(reply.device.kind, kind->name) != 0)
        status = error_set(error, STATUS_DEVICE, "%s describes a device of kind '%s'", kind->worker,
                           reply.device.kind);
    if (status == STATUS_OK) {
        station->device = reply.device;
        station->device.index = request.index;
        memcpy(station->opened, reply.device.uuid, sizeof station->opened);
        station->device.cores_shared = station->settings.binding.shared;
    } else {
        station_drop(station);
    }
    reply_clear(&reply);
    return status;
}

static void begin_tries(struct station *station)
{
    station->tries = 0;
    station->tries_start = clock_monotonic();
}

/* Counts a worker that could not open the device. False: it was the last one. */
static bool may_try_again(struct station *station)
{
    double span = tries_span * station->settings.open_timeout;
    return ++station->tries < tries_most && clock_monotonic() - station->tries_start < span;
}

double station_opening(const struct station_settings *settings)
{
    return (tries_span + requests_of_try) * settings->open_timeout;
}

/* What is known of a device that never opened. */
static void set_lost_device(struct station *station, const char *why)
{
    struct device *device = &station->device;
    int64_t index = device->index;
    device_init(device);
    device->index = index;
    snprintf(device->kind, sizeof device->kind, "%s", station->kind->name);
    if (gethostname(device->hostname, sizeof device->hostname - 1) != 0)
        device->hostname[0] = '\0';
    snprintf(station->choice, sizeof station->choice, "%s", station->kind->name);
    snprintf(station->lost, sizeof station->lost, "%.1000s", why);
}

/* A worker that is lost on the way costs a try. If the last one is lost, *lost says whether there was a
 * device to lose: a worker that ends before it has counted its devices may be for the user to mend. */
static enum status open_kind(struct station *station, const struct device_kind *kind, bool *lost,
                             struct error *error)
{
    enum status status;
    bool answered = false;
    begin_tries(station);
    do
        status = try_kind(station, kind, &answered, error);
    while (status == STATUS_DEVICE && station->worker_lost && may_try_again(station));
    *lost = station->worker_lost && (answered || station->worker_hung);
    return status;
}

enum status station_open(struct station *station, struct error *error)
{
    const struct device_kind *chosen = station->settings.device;
    char reasons[sizeof station->choice] = "";
    for (int i = 0; i < DEVICE_KINDS; ++i) {
        const struct device_kind *kind = &device_kinds[i];
        bool lost;
        if (chosen && chosen != kind)
            continue;
        enum status status = open_kind(station, kind, &lost, error);
        if (status == STATUS_OK) {
            snprintf(station->choice, sizeof station->choice, "%s%.1180s", kind->name, reasons);
            return STATUS_OK;
        }
        if (lost) {
            set_lost_device(station, error->text);
            return STATUS_OK;
        }
        if (status == STATUS_INTERRUPTED)
            return status;
        /* Too many ranks for the devices is for the user to mend, not a reason to measure something
         * else. */
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

/* A device that never opened has no UUID. */
void station_name(const struct station *station, char name[160])
{
    const struct device *device = &station->device;
    if (device->uuid[0])
        snprintf(name, 160, "%s", device->uuid);
    else if (station->kind->numbered)
        snprintf(name, 160, "%s %lld", station->kind->noun, (long long)device->index);
    else
        snprintf(name, 160, "%s", station->kind->noun);
}

/* ---- replacing a worker ---- */

void station_lose(struct station *station, const char *why)
{
    station->reopening = false;
    station->loss_untold = true;
    snprintf(station->lost, sizeof station->lost, "%.1000s", why);
}

static struct request describe_again(const struct station *station)
{
    struct request describe = request_default(REQUEST_DESCRIBE);
    describe.index = station->device.index;
    describe.measure.counters = COUNTERS_OFF; /* the first worker tried them */
    return describe;
}

/* Starts a worker and asks it for the same device; take_reopened gets the answer. */
static enum status begin_reopening(struct station *station, struct error *error)
{
    struct request describe = describe_again(station);
    enum status status = start_worker(station, error);
    if (status == STATUS_OK)
        station_send(station, &describe, station->settings.open_timeout);
    return status;
}

static void reopen_failed(struct station *station, const char *why)
{
    struct error error;
    error_set(&error, STATUS_DEVICE, "%s", why);
    do {
        station_drop(station);
        if (!may_try_again(station)) {
            station_lose(station, error.text);
            return;
        }
    } while (begin_reopening(station, &error));
}

void station_replace(struct station *station)
{
    struct error error;
    begin_tries(station);
    station->reopening = true;
    if (begin_reopening(station, &error))
        reopen_failed(station, error.text);
}

static enum status check_same_device(const struct station *station, const struct device *device,
                                     struct error *error)
{
    if (strcmp(device->uuid, station->opened) == 0)
        return STATUS_OK;
    return error_set(error, STATUS_DEVICE, "the device is now '%.90s'", device->uuid);
}

/* True: the new worker has the device. */
static bool take_reopened(struct station *station, const char *line)
{
    struct request describe = describe_again(station);
    struct reply reply;
    struct error why;
    reply_init(&reply);
    enum status status = station_read(station, &describe, REPLY_DEVICE, line, &reply, &why);
    if (status == STATUS_OK)
        status = check_same_device(station, &reply.device, &why);
    reply_clear(&reply);
    if (status)
        reopen_failed(station, why.text);
    else
        station->reopening = false;
    return status == STATUS_OK;
}

static bool tell_loss(struct station *station, struct error *why)
{
    if (!station->loss_untold)
        return false;
    station->loss_untold = false;
    error_set(why, STATUS_DEVICE, "%s", station->lost);
    return true;
}

static enum station_event step_reopening(struct station *station, enum worker_event event,
                                         const char *line, struct error *why)
{
    if (event == WORKER_LINE && take_reopened(station, line))
        return STATION_READY;
    if (event == WORKER_LOST)
        reopen_failed(station, why->text);
    return tell_loss(station, why) ? STATION_LOST : STATION_QUIET;
}

enum station_event station_step(struct station *station, char **line, struct error *why)
{
    static const enum station_event events[] = {[WORKER_QUIET] = STATION_QUIET,
                                                [WORKER_LINE] = STATION_LINE,
                                                [WORKER_LOST] = STATION_WORKER_LOST};
    char *got = NULL;
    if (tell_loss(station, why))
        return STATION_LOST;
    if (!station->client)
        return STATION_QUIET;
    enum worker_event event = worker_client_step(station->client, &got, why);
    if (!station->reopening) {
        *line = got;
        return events[event];
    }
    enum station_event result = step_reopening(station, event, got, why);
    free(got);
    return result;
}

enum status station_reopen(struct station *station, struct error *error)
{
    char *line;
    enum station_event event = STATION_QUIET;
    station_drop(station);
    station_replace(station);
    while (event != STATION_READY && event != STATION_LOST) {
        if (is_interrupted(station)) {
            station->reopening = false;
            station_drop(station);
            return error_set(error, STATUS_INTERRUPTED, "%s",
                             signals_text(*station->settings.interrupted));
        }
        if (station->client)
            wait_for_worker(station);
        event = station_step(station, &line, error);
    }
    return event == STATION_READY ? STATUS_OK : STATUS_DEVICE;
}

void station_poll(const struct station *station, struct pollfd descriptors[2], nfds_t *count)
{
    *count = station->client ? 2 : 0;
    if (station->client)
        worker_client_poll(station->client, descriptors);
}
