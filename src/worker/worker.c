/* The measuring process: reads requests on standard input, writes replies to standard output, and
 * owns one device. model/protocol.h has the messages, device_ops.h the functions of a device. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/protocol.h"
#include "version.h"
#include "worker/batch.h"
#include "worker/device_ops.h"
#include "worker/measure.h"
#include "worker/row_kind.h"

struct worker {
    const struct device_ops *ops;
    struct device_state *state; /* NULL: not open */
    struct device device;
    struct batch *batch;
    void *kept;    /* processes that the last row's kind keeps; see row_kind.h */
    bool tuned;    /* the device holds memory for roofs */
    bool watches;  /* reports the health of a device that another worker measures */
    int busy_kind; /* roof whose work keeps the device busy between requests; BUSY_NONE */
};
enum { BUSY_NONE = -1 };

static const struct row_kind *const row_kinds[] = {
#ifdef ROOFSWEEP_PROGRAMS
    &program_row,
#endif
    NULL,
};

/* Returns NULL if the request measures no row, or a row that device_ops measures. */
static const struct row_kind *row_kind_of(const struct request *request)
{
    size_t i = 0;
    while (row_kinds[i] &&
           (request->op != REQUEST_MEASURE || row_kinds[i]->workload != request->config.workload))
        ++i;
    return row_kinds[i];
}

/* Ends processes that rows of other kinds left on the device. */
static void release_others(struct worker *worker, const struct row_kind *own)
{
    for (size_t i = 0; worker->kept && row_kinds[i]; ++i)
        if (row_kinds[i] != own)
            row_kinds[i]->release(&worker->kept);
}

static enum status worker_open(struct worker *worker, int64_t index, struct error *error)
{
    if (worker->state)
        return STATUS_OK;
    struct device *device = &worker->device;
    struct utsname system;
    device_init(device);
    TRY(worker->ops->open((int)index, &worker->state, device, error));
    if (uname(&system) == 0)
        snprintf(device->system + strlen(device->system), 124, "%.40s %.80s", system.sysname,
                 system.release);
    if (worker->ops->health)
        worker->ops->health(worker->state, device->health_start);
    return STATUS_OK;
}

static enum status try_counters(struct worker *worker, struct error *error)
{
    struct device *device = &worker->device;
    if (worker->ops->try_counters)
        return worker->ops->try_counters(worker->state, device, error);
    device->counters = measure_no_counters;
    return STATUS_OK;
}

static void forget_roofs(struct worker *worker)
{
    if (worker->tuned)
        worker->ops->release_roofs(worker->state);
    worker->tuned = false;
}

/* A roof that cannot be measured becomes an unmeasured roof with the reason. */
static enum status answer_roof(struct worker *worker, const struct request *request,
                               struct reply *reply, struct error *error)
{
    if (!worker->tuned)
        return error_set(error, STATUS_USAGE, "op roof comes after op tune");
    const struct roof_order order = {request->start, request->sustained, request->only_sustained,
                                     request->peaks.energy};
    const int kind = (int)request->kind;
    struct roof *roof = &reply->roof;
    roof_init(roof, kind, request->condition);
    enum status status = worker->ops->measure_roof(worker->state, kind, &order, roof, error);
    if (status == STATUS_DEVICE)
        return status;
    if (status)
        roof_set_unmeasured(roof, kind, request->condition, clock_date(), error->text);
    reply->kind = REPLY_ROOF;
    bool measured = !isnan(roof_value(roof)) || !isnan(roof->sustained);
    worker->busy_kind = request->keep_busy && measured ? request->kind : BUSY_NONE;
    return STATUS_OK;
}

/* Returns true while input has neither a request nor its end, until the time `end`. */
static bool input_is_quiet(void *argument)
{
    const double *end = argument;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) == 0 && clock_monotonic() < *end;
}

/* Keeps the device busy after the reply. The next request reports a failure. */
static void keep_busy(struct worker *worker)
{
    const double longest = 60.0; /* s; after a longer silence the rank counts as dead */
    struct error ignored;
    double end = clock_monotonic() + longest;
    if (worker->busy_kind != BUSY_NONE && worker->ops->keep_busy)
        worker->ops->keep_busy(worker->state, worker->busy_kind, input_is_quiet, &end, &ignored);
    worker->busy_kind = BUSY_NONE;
}

static enum status answer_device(struct worker *worker, const struct request *request,
                                 struct reply *reply, struct error *error)
{
    const bool again = worker->state && request->op == REQUEST_DESCRIBE;
    enum status status = worker_open(worker, request->index, error);
    if (again && worker->ops->health)
        worker->ops->health(worker->state, worker->device.health_end);
    else if (status == STATUS_OK && request->op == REQUEST_DESCRIBE &&
             request->measure.counters != COUNTERS_OFF)
        status = try_counters(worker, error);
    TRY(status);
    reply->kind = REPLY_DEVICE;
    reply->device = worker->device;
    return STATUS_OK;
}

static enum status answer_measure(struct worker *worker, const struct request *request,
                                  struct reply *reply, struct error *error)
{
    bool waits = false;
    const struct row_kind *kind = row_kind_of(request);
    TRY(worker_open(worker, 0, error));
    if (kind) /* the row gets the whole device */
        TRY(batch_count(worker->batch, worker->state, error));
    TRY(kind ? kind->measure(worker->ops, worker->state, &worker->kept, request, &reply->record,
                             error)
             : batch_measure(worker->batch, worker->state, request, &reply->record, &waits, error));
    reply->kind = waits ? REPLY_TIMED : REPLY_RECORD;
    config_format(&request->config, reply->configuration);
    return STATUS_OK;
}

/* Lists no addresses if one is unknown, or if two devices are slices of one GPU. */
static enum status answer_devices(const struct worker *worker, struct reply *reply,
                                  struct error *error)
{
    struct visible visible = {0};
    int count = 0;
    TRY(worker->ops->list(&count, visible.address, error));
    reply->kind = REPLY_DEVICES;
    reply->count = count;
    visible.count = count <= VISIBLE_MAX && visible.address[0] != 0 ? count : 0;
    for (int i = 0; i < visible.count; ++i)
        for (int j = 0; j < i; ++j)
            if (visible.address[j] == visible.address[i])
                return STATUS_OK;
    reply->visible = visible;
    return STATUS_OK;
}

static enum status answer(struct worker *worker, const char *line, struct reply *reply,
                          struct error *error)
{
    struct request request;
    TRY(request_decode(line, &request, error));
    if (worker->watches && request.op != REQUEST_DESCRIBE)
        return error_set(error, STATUS_USAGE, "with --watch the only op is describe");
    release_others(worker, row_kind_of(&request));
    switch (request.op) {
    case REQUEST_DEVICES:
        return answer_devices(worker, reply, error);
    case REQUEST_TUNE:
        TRY(worker_open(worker, 0, error));
        forget_roofs(worker);
        worker->tuned = true;
        TRY(worker->ops->tune_roofs(worker->state, &request.peaks, request.prove, reply->found,
                                    error));
        TRY(request.prove ? try_counters(worker, error) : STATUS_OK);
        reply->device.counters = worker->device.counters;
        reply->kind = REPLY_ROOFS;
        return STATUS_OK;
    case REQUEST_ROOF:
        return answer_roof(worker, &request, reply, error);
    case REQUEST_LINKS:
        if (!worker->ops->measure_links)
            return error_set(error, STATUS_UNSUPPORTED, "no links between devices of this kind");
        reply->kind = REPLY_LINKS;
        return worker->ops->measure_links(&request.link, &reply->links, reply->id, error);
    case REQUEST_RELEASE:
        forget_roofs(worker);
        reply->kind = REPLY_ROOFS;
        return STATUS_OK;
    case REQUEST_MEASURE:
        return answer_measure(worker, &request, reply, error);
    case REQUEST_COUNT:
        reply->kind = REPLY_RECORD;
        return batch_take(worker->batch, worker->state, &reply->record, error);
    case REQUEST_DESCRIBE:
    default:
        return answer_device(worker, &request, reply, error);
    }
}

static enum status serve(struct worker *worker, FILE *replies)
{
    char *line = NULL;
    size_t size = 0;
    enum status status = STATUS_OK;
    while (status != STATUS_DEVICE && getline(&line, &size, stdin) > 0) {
        struct reply reply;
        reply_init(&reply);
        status = answer(worker, line, &reply, &reply.error);
        if (status) {
            reply.kind = REPLY_ERROR;
            reply.status = status;
        }
        char *text = reply_encode(&reply);
        fprintf(replies, "%s\n", text ? text : "{\"reply\":\"error\",\"text\":\"out of memory\"}");
        fflush(replies);
        free(text);
        reply_clear(&reply);
        keep_busy(worker);
    }
    free(line);
    return status;
}

/* Returns an exit code of roofsweep. */
static int self_test(struct worker *worker)
{
    struct error error;
    enum status status = worker_open(worker, 0, &error);
    if (status == STATUS_OK)
        status = worker->ops->self_test ? worker->ops->self_test(worker->state, stdout, &error)
                                        : error_set(&error, STATUS_UNSUPPORTED, "%s: %s",
                                                    counted_word[measure_no_counters.code],
                                                    measure_no_counters.reason);
    if (status) /* to standard output, below the table */
        printf("%s\n", error.text);
    fflush(stdout);
    if (status != STATUS_DEVICE)
        worker->ops->close(worker->state);
    return status == STATUS_OK ? 0 : status == STATUS_FAILED ? 3 : 4;
}

/* Makes the kernel kill the worker, even a stopped one, when the thread that started the worker
 * ends. This thread belongs to the rank, or to a wrapper between rank and worker. Standard input is
 * a socket pair, whose peer is the rank's process, even a dead one. */
static void tie_to_rank(void)
{
    struct ucred rank = {0};
    socklen_t size = sizeof rank;
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bool paired = getsockopt(STDIN_FILENO, SOL_SOCKET, SO_PEERCRED, &rank, &size) == 0;
    if (getppid() != parent || (paired && rank.pid > 0 && kill(rank.pid, 0) != 0 && errno == ESRCH))
        raise(SIGKILL);
}

int main(int argc, char **argv)
{
    struct worker worker = {
        .ops = &device_ops, .batch = batch_create(&device_ops), .busy_kind = BUSY_NONE};
    if (argc > 1 && strcmp(argv[1], "--self-test") == 0)
        return self_test(&worker);
    if (argc == 3 && strcmp(argv[1], "--watch") == 0 && worker.ops->watch) {
        device_init(&worker.device);
        strncpy(worker.device.uuid, argv[2], sizeof worker.device.uuid - 1);
        worker.state = worker.ops->watch(argv[2]);
        worker.watches = worker.state != NULL;
    }
    if (argc > 1 && !worker.watches) {
        bool version = strcmp(argv[1], "--version") == 0;
        printf(version ? "%s %s\n"
                       : "%s: %s. Reads requests on standard input, one JSON object "
                         "per line:\n  {\"op\":\"devices\"}\n  {\"op\":\"describe\"}\n"
                         "  {\"op\":\"measure\",\"configuration\":"
                         "\"conv2d batch=16\"}\n"
                         "--self-test counts known work instead\n"
                         "--watch PCI only reports the health of that device, by op describe\n",
               program_invocation_short_name,
               version ? ROOFSWEEP_VERSION : worker.ops->description);
        return version || strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    tie_to_rank();
    /* Vendor libraries print to standard error instead of among the replies. */
    FILE *replies = fdopen(dup(STDOUT_FILENO), "w");
    if (!replies || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || !worker.batch) {
        perror("standard output");
        return 1;
    }
    enum status status = serve(&worker, replies);
    release_others(&worker, NULL);
    batch_destroy(worker.batch, status == STATUS_DEVICE ? NULL : worker.state);
    if (status != STATUS_DEVICE) {
        forget_roofs(&worker);
        worker.ops->close(worker.state);
    }
    return status == STATUS_DEVICE ? 4 : 0;
}
