#include "ranks/node_roofs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "base/clock.h"
#include "ranks/gathering.h"
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
    struct gathering ranks;
    struct executor *executor;
    const struct node_roofs_settings *settings;
    const struct log *log;
    struct device device;   /* the executor's, with the roofs so far */
    int device_kind;        /* of this device: index into device_kinds */
    bool found[ROOF_KINDS]; /* of this device; not those that a worker was lost over */
    bool tuned[ROOF_KINDS]; /* of them, those that the present worker can measure */
    /* How many devices of the node have a roof, for each kind of device: only devices of one
     * kind do the same. What a GPU and a CPU call "dram read" are two things. */
    int owners[DEVICE_KINDS][ROOF_KINDS];
    bool sustains[ROOF_KINDS]; /* of compute: also measured once the clock has settled */
    bool held;  /* the worker goes on with its last roof until it is asked for something */
    int losses; /* of this rank's workers */
    /* On the heap: MPI writes to an abandoned call when the last rank comes after all. */
    double *rates; /* best bursts of each kind of device and roof: own, and all ranks' sums */
    struct roof_way *way, *ways; /* ROOF_KINDS of this rank, and of each rank */
    uint64_t *models;            /* of each rank's device; NO_MODEL: it is not tuned */
    struct progress *progress;   /* of rank 0 of the job; else NULL */
    size_t left;                 /* roofs that the node still has to measure */
};

/* No roofs are a loss for what is derived from them, not a reason to measure nothing. */
static enum status tune(struct node *node, const struct roof_way *ways)
{
    struct request request = request_default(REQUEST_TUNE);
    struct reply reply;
    struct error error;
    memset(node->tuned, 0, sizeof node->tuned);
    request.peaks = node->settings->request;
    request.prove = node->settings->prove;
    if (ways)
        memcpy(request.peaks.ways, ways, sizeof request.peaks.ways);
    reply_init(&reply);
    enum status status = executor_ask(node->executor, &request, REPLY_ROOFS,
                                      tune_timeouts * node->settings->timeout, &reply, &error);
    if (status == STATUS_OK) {
        memcpy(node->tuned, reply.found, sizeof node->tuned);
        memcpy(node->way, reply.ways, sizeof reply.ways);
    } else
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

/* A lost worker takes what was tuned with it: a new one tunes anew. `ways`: of another device of the model;
 * NULL: all are looked for. */
static void tune_until_done(struct node *node, const struct roof_way *ways)
{
    while (tune(node, ways) == STATUS_DEVICE)
        if (!replace_worker(node))
            return;
}

/* The roof that a worker was lost over is not tried again. */
static void recover(struct node *node, int lost_over)
{
    node->found[lost_over] = false;
    memset(node->tuned, 0, sizeof node->tuned);
    if (replace_worker(node))
        tune_until_done(node, node->way);
}

/* ---- one device of each model first ---- */

enum { NO_MODEL = 0 };

static uint64_t model_of(const struct node *node)
{
    char text[sizeof node->device.model + sizeof node->device.library_version + 32];
    snprintf(text, sizeof text, "%d %s %s", node->device_kind, node->device.model,
             node->device.library_version);
    return node->settings->skip ? NO_MODEL : XXH3_64bits(text, strlen(text)) | 1;
}

/* The first rank whose device is of this rank's model. */
static int leader_of(const struct node *node)
{
    int rank = 0;
    while (node->models[rank] != node->models[node->ranks.rank])
        ++rank;
    return rank;
}

/* The first device of a model looks for the fastest ways; the others then check that they are as fast there.
 * All at once would wait for each other in the driver for longer than that. */
static void tune_in_turn(struct node *node)
{
    const int size = ROOF_KINDS * (int)sizeof *node->way, leader = leader_of(node);
    const bool tunes = !node->settings->skip;
    MPI_Request request;
    if (tunes && leader == node->ranks.rank)
        tune_until_done(node, NULL);
    MPI_Iallgather(node->way, size, MPI_BYTE, node->ways, size, MPI_BYTE, node->ranks.comm,
                   &request);
    if (gathering_await(&node->ranks, request) && tunes && leader != node->ranks.rank)
        tune_until_done(node, node->ways + (size_t)leader * ROOF_KINDS);
}

/* ---- measuring ---- */

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
    bool once = roof_kinds[kind].measure != ROOF_COMPUTE || node->sustains[kind];
    request.sustained = once && (condition == ROOF_TOGETHER || !wants_together(node, kind));
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
    if (node->progress && !node->ranks.leaving)
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
    return settles && node->ranks.count == 1 ? clock_epoch() + lead : 0.0;
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
    node->left = count_alone(node) * (size_t)node->ranks.count;
    for (int kind = 0; kind < DEVICE_KINDS; ++kind)
        node->left += count_together(node, kind);
    if (node->log->rank == 0 && node->left > 0)
        node->progress = progress_create(node->log, "roofs: ", 0, node->left);
}

/* In turns; each roof that is `due`. */
static void measure_alone(struct node *node, bool (*due)(const struct node *node, int kind))
{
    const size_t others = count_alone(node);
    for (int turn = 0; turn < node->ranks.count && !node->ranks.leaving; ++turn) {
        for (int kind = 0; kind < ROOF_KINDS && turn == node->ranks.rank; ++kind)
            if (node->found[kind] && due(node, kind) && !*node->ranks.interrupted) {
                measure(node, kind, ROOF_ALONE, start_alone(node));
                advance(node, 1);
            }
        gathering_wait(&node->ranks, 0.0);
        if (turn != node->ranks.rank)
            advance(node, others);
    }
}

/* ---- which of them are sustained ---- */

/* Of the bursts alone; 0: there is none. */
static double burst_of(const struct node *node, int kind)
{
    for (int64_t i = 0; i < node->device.roof_count; ++i) {
        const struct roof *roof = &node->device.roofs[i];
        if (roof->kind.index == kind && roof->condition == ROOF_ALONE && roof->performance > 0)
            return roof->performance;
    }
    return 0;
}

/* No other way to the same precision and unit is faster. All devices of a kind agree on it, because they measure
 * together; where none was measured alone nobody knows. */
static bool is_fastest(const double rates[ROOF_KINDS], int kind)
{
    const struct roof_kind *own = &roof_kinds[kind];
    for (int other = 0; other < ROOF_KINDS; ++other)
        if (roof_kinds[other].measure == ROOF_COMPUTE &&
            roof_kinds[other].precision == own->precision && roof_kinds[other].unit == own->unit &&
            rates[other] > rates[kind])
            return false;
    return own->measure == ROOF_COMPUTE;
}

/* What a device sustains is that of its fastest ways: until the clock has settled takes far longer than a
 * burst. */
static void choose_sustained(struct node *node)
{
    enum { COUNT = DEVICE_KINDS * ROOF_KINDS };
    const int first = node->device_kind * ROOF_KINDS;
    double *sums = node->rates + COUNT;
    MPI_Request request;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        node->rates[first + kind] = burst_of(node, kind);
    MPI_Iallreduce(node->rates, sums, COUNT, MPI_DOUBLE, MPI_SUM, node->ranks.comm, &request);
    const bool known =
        gathering_await(&node->ranks, request) && device_kinds[node->device_kind].clock_settles;
    for (int kind = 0; known && kind < ROOF_KINDS; ++kind)
        node->sustains[kind] = is_fastest(sums + first, kind);
}

static bool sustained_is_due(const struct node *node, int kind)
{
    return wants_alone(node, kind) && !wants_together(node, kind) && node->sustains[kind];
}

/* Whether any device of the node has something to sustain alone: all ranks say the same. */
static bool any_sustained_alone(const struct node *node)
{
    const bool together = node->settings->request.condition[ROOF_TOGETHER];
    const double *sums = node->rates + DEVICE_KINDS * ROOF_KINDS;
    for (int device = 0; device < DEVICE_KINDS; ++device)
        for (int kind = 0; kind < ROOF_KINDS; ++kind)
            if (device_kinds[device].clock_settles && node->owners[device][kind] > 0 &&
                sums[device * ROOF_KINDS + kind] > 0 &&
                (node->owners[device][kind] == 1 || !together))
                return true;
    return false;
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
    for (int kind = 0; kind < ROOF_KINDS && !node->ranks.leaving; ++kind) {
        if (node->owners[device_kind][kind] < 2 ||
            !node->settings->request.condition[ROOF_TOGETHER])
            continue;
        double start = gathering_wait(&node->ranks, clock_epoch() + lead);
        if (node->device_kind == device_kind && node->found[kind] && !node->ranks.leaving)
            measure(node, kind, ROOF_TOGETHER, start);
        else
            rest(node);
        advance(node, 1);
    }
    if (!node->ranks.leaving)
        gathering_wait(&node->ranks, 0.0);
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
    bool several = node->ranks.count > 1;
    log_print(node->log, LOG_INFO, "measuring the roofs of %d device%s%s%s", node->ranks.count,
              several ? "s of this node" : "", several && wanted[ROOF_ALONE] ? ", each alone" : "",
              several && wanted[ROOF_TOGETHER] ? ", all together" : "");
}

static void count_owners(struct node *node)
{
    int found[DEVICE_KINDS][ROOF_KINDS] = {{0}};
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        found[node->device_kind][kind] = node->found[kind];
    MPI_Allreduce(found, node->owners, DEVICE_KINDS * ROOF_KINDS, MPI_INT, MPI_SUM,
                  node->ranks.comm);
}

static bool exchange_create(struct node *node)
{
    const size_t ranks = (size_t)node->ranks.count;
    node->rates = calloc(2 * DEVICE_KINDS * ROOF_KINDS, sizeof *node->rates);
    node->way = calloc(ROOF_KINDS, sizeof *node->way);
    node->ways = calloc(ranks * ROOF_KINDS, sizeof *node->ways);
    node->models = calloc(ranks, sizeof *node->models);
    return node->rates && node->way && node->ways && node->models;
}

static void exchange_free(struct node *node)
{
    free(node->rates);
    free(node->way);
    free(node->ways);
    free(node->models);
}

/* The ranks of the node, and the models of their devices. */
static void node_open(struct node *node, MPI_Comm comm, const struct watchdog_settings *guard)
{
    if (!gathering_open(&node->ranks, comm, guard) || !exchange_create(node))
        MPI_Abort(comm, 1);
    struct watchdog *watchdog = watchdog_begin(guard);
    MPI_Allgather(&(uint64_t){model_of(node)}, 1, MPI_UINT64_T, node->models, 1, MPI_UINT64_T,
                  node->ranks.comm);
    watchdog_end(watchdog);
}

static void node_tune(struct node *node, const struct watchdog_settings *guard)
{
    tune_in_turn(node);
    memcpy(node->found, node->tuned, sizeof node->found);
    if (!node->ranks.abandoned)
        gathering_wait(&node->ranks, 0.0);
    struct watchdog *watchdog = watchdog_begin(guard);
    if (!node->ranks.abandoned)
        count_owners(node);
    watchdog_end(watchdog);
}

static void node_measure(struct node *node)
{
    begin_progress(node);
    measure_alone(node, wants_alone);
    if (!node->ranks.leaving)
        choose_sustained(node);
    if (!node->ranks.leaving && any_sustained_alone(node))
        measure_alone(node, sustained_is_due);
    for (int kind = 0; kind < DEVICE_KINDS; ++kind)
        measure_together(node, kind);
    progress_destroy(node->progress);
}

void node_roofs_measure(MPI_Comm comm, struct executor *executor,
                        const struct node_roofs_settings *settings,
                        const volatile sig_atomic_t *interrupted, const struct log *log)
{
    struct node node = {
        .executor = executor,
        .settings = settings,
        .log = log,
        .device = *executor_device(executor),
    };
    node.ranks = (struct gathering){.interrupted = interrupted,
                                    .patience = settings->patience,
                                    .stop_patience = settings->stop_patience,
                                    .log = log,
                                    .host = node.device.hostname};
    node.device_kind = (int)(executor_kind(executor) - device_kinds);
    const struct watchdog_settings guard = {comm, log, call_patience, 1,
                                            "finding the node's ranks"};
    node_open(&node, comm, &guard);
    if (!settings->skip)
        log_start(&node);
    node_tune(&node, &guard);
    node_measure(&node);
    if (gathering_close(&node.ranks, &guard))
        exchange_free(&node);
    if (settings->skip)
        return;
    release(&node);
    executor_set_roofs(executor, &node.device);
}
