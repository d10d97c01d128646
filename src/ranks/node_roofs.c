#include "ranks/node_roofs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "ranks/progress.h"
#include "ranks/watchdog.h"

static const double tune_timeouts = 3; /* tuning tries many settings of all roofs */
/* s from the agreement to the common start. The slowest worker must be ready by then. Workers load
 * their devices at once, so that each clock has as long to settle. */
static const double lead = 0.1;
static const double call_patience =
    60; /* s, of calls that wait for ranks that were here a moment ago */
/* After so many lost workers a device gets no more roofs. */
enum { LOSSES_MOST = 3 };

/* This rank among the ranks of its node. */
struct node {
    MPI_Comm comm;
    int rank, count;
    struct executor *executor;
    const struct node_roofs_settings *settings;
    const volatile sig_atomic_t *interrupted;
    const struct log *log;
    struct device device;   /* the executor's, with the roofs so far */
    int device_kind;        /* of this device: index into device_kinds */
    bool found[ROOF_KINDS]; /* of this device; not those that a worker was lost over */
    bool tuned[ROOF_KINDS]; /* of them, those that the present worker can measure */
    /* How many devices of the node have a roof, for each kind of device: only devices of one
     * kind do the same. What a GPU and a CPU call "dram read" are two things. */
    int owners[DEVICE_KINDS][ROOF_KINDS];
    bool held;      /* the worker goes on with its last roof until it is asked for something */
    int losses;     /* of this rank's workers */
    bool leaving;   /* some rank was interrupted, or is waited for no longer */
    bool abandoned; /* the latter: a collective call is still under way */
    /* {latest moment, interrupted}, of this rank and of all. On the heap: MPI writes to an abandoned call
     * when the last rank comes after all. */
    double *own, *all;
    struct progress *progress; /* of rank 0 of the job; else NULL */
    size_t left;               /* roofs that the node still has to measure */
};

static bool may_wait(const struct node *node, double start, double *interrupted)
{
    double now = clock_monotonic();
    if (*node->interrupted && *interrupted <= 0.0)
        *interrupted = now;
    return now - start < node->settings->patience &&
           (*interrupted <= 0.0 || now - *interrupted < node->settings->stop_patience);
}

static void abandon(struct node *node)
{
    log_print(node->log, LOG_WARNING,
              "%s: a rank of this node does not come to the next roof; it is waited for no longer",
              node->device.hostname);
    node->leaving = node->abandoned = true;
}

/* Returns once all ranks of the node are here, with the latest of their moments. The waiting ranks
 * sleep: MPI's own waiting would take cores from the device that is being measured. */
static double wait_for_all(struct node *node, double moment)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    double start = clock_monotonic(), interrupted = 0.0;
    MPI_Request request;
    int done = 0;
    node->own[0] = moment;
    node->own[1] = *node->interrupted != 0;
    MPI_Iallreduce(node->own, node->all, 2, MPI_DOUBLE, MPI_MAX, node->comm, &request);
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
         MPI_Test(&request, &done, MPI_STATUS_IGNORE)) {
        if (!may_wait(node, start, &interrupted)) {
            abandon(node);
            return moment;
        }
        nanosleep(&nap, NULL);
    }
    node->leaving = node->all[1] > 0.0;
    return node->all[0];
}

/* No roofs are a loss for what is derived from them, not a reason to measure nothing. */
static enum status tune(struct node *node)
{
    struct request request = request_default(REQUEST_TUNE);
    struct reply reply;
    struct error error;
    memset(node->tuned, 0, sizeof node->tuned);
    request.peaks = node->settings->request;
    request.prove = node->settings->prove;
    reply_init(&reply);
    enum status status = executor_ask(node->executor, &request, REPLY_ROOFS,
                                      tune_timeouts * node->settings->timeout, &reply, &error);
    if (status == STATUS_OK)
        memcpy(node->tuned, reply.found, sizeof node->tuned);
    else
        log_print(node->log, LOG_WARNING, "%s on %s: roofs not tuned: %s", node->device.uuid,
                  node->device.hostname, error.text);
    reply_clear(&reply);
    return status;
}

/* False: the device gets no more roofs. */
static bool replace_worker(struct node *node)
{
    struct error error;
    return executor_reopen(node->executor, &error) == STATUS_OK && ++node->losses < LOSSES_MOST;
}

/* A lost worker takes what was tuned with it: a new one tunes anew. */
static void tune_until_done(struct node *node)
{
    while (tune(node) == STATUS_DEVICE)
        if (!replace_worker(node))
            return;
}

/* The roof that a worker was lost over is not tried again. */
static void recover(struct node *node, int lost_over)
{
    node->found[lost_over] = false;
    memset(node->tuned, 0, sizeof node->tuned);
    if (replace_worker(node))
        tune_until_done(node);
}

static void add_unmeasured(struct node *node, int kind, enum roof_condition condition,
                           const char *why)
{
    struct roof roof;
    roof_set_unmeasured(&roof, kind, condition, clock_epoch(), why);
    device_add_roof(&node->device, &roof);
}

static bool wants_together(const struct node *node, int kind)
{
    return node->owners[node->device_kind][kind] > 1 &&
           node->settings->request.condition[ROOF_TOGETHER];
}

static void measure(struct node *node, int kind, enum roof_condition condition, double start)
{
    struct request request = request_default(REQUEST_ROOF);
    struct reply reply;
    struct error error;
    if (!node->tuned[kind]) {
        add_unmeasured(node, kind, condition, "its workers were lost over other roofs");
        return;
    }
    request.kind = kind;
    request.condition = condition;
    request.start = start;
    request.sustained = condition == ROOF_TOGETHER || !wants_together(node, kind);
    request.hold = node->held = condition == ROOF_TOGETHER;
    reply_init(&reply);
    enum status status =
        executor_ask(node->executor, &request, REPLY_ROOF, node->settings->timeout, &reply, &error);
    if (status == STATUS_OK)
        device_add_roof(&node->device, &reply.roof);
    else
        add_unmeasured(node, kind, condition, error.text);
    if (status == STATUS_DEVICE) {
        log_print(node->log, LOG_WARNING, "%s on %s: roof %s, %s: %s", node->device.uuid,
                  node->device.hostname, roof_kinds[kind].name, roof_condition_name[condition],
                  error.text);
        recover(node, kind);
    }
    reply_clear(&reply);
}

/* Where so many roofs are done, on this device or, meanwhile, on another. */
static void advance(struct node *node, size_t roofs)
{
    node->left -= roofs < node->left ? roofs : node->left;
    if (node->progress && !node->leaving)
        progress_update(node->progress, node->left, 0);
}

static bool wants_alone(const struct node *node, int kind)
{
    return node->settings->request.condition[ROOF_ALONE] ||
           node->owners[node->device_kind][kind] == 1;
}

/* On a node with one device all roofs get time before they begin: there it costs little, and the
 * power sensor, which is slow, can follow. */
static double start_alone(const struct node *node)
{
    bool settles = device_kinds[node->device_kind].clock_settles;
    return settles && node->count == 1 ? clock_epoch() + lead : 0.0;
}

/* Those that this device measures alone; others of its kind have about as many. */
static size_t count_alone(const struct node *node)
{
    size_t count = 0;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        count += node->found[kind] && wants_alone(node, kind);
    return count;
}

static size_t count_together(const struct node *node, int device_kind)
{
    size_t count = 0;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        count += node->owners[device_kind][kind] >= 2 &&
                 node->settings->request.condition[ROOF_TOGETHER];
    return count;
}

static void begin_progress(struct node *node)
{
    node->left = count_alone(node) * (size_t)node->count;
    for (int kind = 0; kind < DEVICE_KINDS; ++kind)
        node->left += count_together(node, kind);
    if (node->log->rank == 0 && node->left > 0)
        node->progress = progress_create(node->log, "roofs: ", 0, node->left);
}

static void measure_alone(struct node *node)
{
    const size_t others = count_alone(node);
    for (int turn = 0; turn < node->count && !node->leaving; ++turn) {
        for (int kind = 0; kind < ROOF_KINDS && turn == node->rank; ++kind)
            if (node->found[kind] && wants_alone(node, kind) && !*node->interrupted) {
                measure(node, kind, ROOF_ALONE, start_alone(node));
                advance(node, 1);
            }
        wait_for_all(node, 0.0);
        if (turn != node->rank)
            advance(node, others);
    }
}

/* Until all ranks have their samples, the worker has gone on with the last roof. Any request ends
 * that. */
static void rest(struct node *node)
{
    struct request request = request_default(REQUEST_DEVICES);
    struct reply reply;
    struct error error;
    if (!node->held)
        return;
    node->held = false;
    reply_init(&reply);
    if (executor_ask(node->executor, &request, REPLY_DEVICES, node->settings->timeout, &reply,
                     &error))
        log_print(node->log, LOG_DEBUG, "the last roof went on: %s", error.text);
    reply_clear(&reply);
}

static void measure_together(struct node *node, int device_kind)
{
    for (int kind = 0; kind < ROOF_KINDS && !node->leaving; ++kind) {
        if (node->owners[device_kind][kind] < 2 ||
            !node->settings->request.condition[ROOF_TOGETHER])
            continue;
        double start = wait_for_all(node, clock_epoch() + lead);
        if (node->device_kind == device_kind && node->found[kind] && !node->leaving)
            measure(node, kind, ROOF_TOGETHER, start);
        else
            rest(node);
        advance(node, 1);
    }
    if (!node->leaving)
        wait_for_all(node, 0.0);
    rest(node);
}

/* Roofs hold memory. Those between two GPUs also hold a context on the other one, which would count
 * there as another program's. */
static void release(struct node *node)
{
    struct request request = request_default(REQUEST_RELEASE);
    struct reply reply;
    struct error error;
    reply_init(&reply);
    if (executor_ask(node->executor, &request, REPLY_ROOFS, node->settings->timeout, &reply,
                     &error))
        log_print(node->log, LOG_DEBUG, "roofs not released: %s", error.text);
    reply_clear(&reply);
}

static void log_start(const struct node *node)
{
    const bool *wanted = node->settings->request.condition;
    bool several = node->count > 1;
    log_print(node->log, LOG_INFO, "measuring the roofs of %d device%s%s%s", node->count,
              several ? "s of this node" : "", several && wanted[ROOF_ALONE] ? ", each alone" : "",
              several && wanted[ROOF_TOGETHER] ? ", all together" : "");
}

static void count_owners(struct node *node)
{
    int found[DEVICE_KINDS][ROOF_KINDS] = {{0}};
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        found[node->device_kind][kind] = node->found[kind];
    MPI_Allreduce(found, node->owners, DEVICE_KINDS * ROOF_KINDS, MPI_INT, MPI_SUM, node->comm);
}

void node_roofs_measure(MPI_Comm comm, struct executor *executor,
                        const struct node_roofs_settings *settings,
                        const volatile sig_atomic_t *interrupted, const struct log *log)
{
    struct node node = {
        .executor = executor,
        .settings = settings,
        .interrupted = interrupted,
        .log = log,
        .device = *executor_device(executor),
    };
    node.device_kind = (int)(executor_kind(executor) - device_kinds);
    const struct watchdog_settings guard = {comm, log, call_patience, 1,
                                            "finding the node's ranks"};
    struct watchdog *watchdog = watchdog_begin(&guard);
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node.comm);
    watchdog_end(watchdog);
    MPI_Comm_rank(node.comm, &node.rank);
    MPI_Comm_size(node.comm, &node.count);
    if (!settings->skip) {
        log_start(&node);
        tune_until_done(&node);
    }
    memcpy(node.found, node.tuned, sizeof node.found);
    node.own = calloc(4, sizeof *node.own);
    if (!node.own)
        MPI_Abort(comm, 1);
    node.all = node.own + 2;
    wait_for_all(&node, 0.0);
    watchdog = watchdog_begin(&guard);
    if (!node.abandoned)
        count_owners(&node);
    watchdog_end(watchdog);
    begin_progress(&node);
    measure_alone(&node);
    for (int kind = 0; kind < DEVICE_KINDS; ++kind)
        measure_together(&node, kind);
    if (!node.abandoned) {
        watchdog = watchdog_begin(&guard);
        MPI_Comm_free(&node.comm);
        watchdog_end(watchdog);
        free(node.own);
    }
    progress_destroy(node.progress);
    if (settings->skip)
        return;
    release(&node);
    executor_set_roofs(executor, &node.device);
}
