#include "ranks/node_roofs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "ranks/node.h"
#include "ranks/node_tuning.h"
#include "ranks/progress.h"
#include "ranks/watchdog.h"

static const double call_patience =
    60; /* s, of calls that wait for ranks that were here a moment ago */

/* ---- measuring ---- */

static void add_unmeasured(struct node *node, int kind, enum roof_condition condition,
                           const char *why)
{
    struct roof roof;
    roof_set_unmeasured(&roof, kind, condition, clock_epoch(), why);
    device_add_roof(&node->device, &roof);
}

/* Whether devices of a kind do it together, whichever this one is: all ranks say the same. */
static bool is_shared(const struct node *node, int device_kind, int kind)
{
    return node->owners[device_kind][kind] > 1 && node->settings->request.condition[ROOF_TOGETHER];
}

static bool wants_together(const struct node *node, int kind)
{
    return is_shared(node, node->device_kind, kind);
}

/* False: it has no answer. A worker that is lost over it is replaced. */
static bool ask(struct node *node, const struct request *request, struct reply *reply,
                struct error *error)
{
    const int kind = request->kind;
    enum status status =
        executor_ask(node->executor, request, REPLY_ROOF, node->settings->timeout, reply, error);
    if (status == STATUS_DEVICE) {
        log_print(node->log, LOG_WARNING, "%s on %s: roof %s, %s: %s", node->device.uuid,
                  node->device.hostname, roof_kinds[kind].name,
                  roof_condition_name[request->condition], error->text);
        node_recover(node, kind);
    }
    return status == STATUS_OK;
}

/* Its value; of compute the burst. */
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
    request.sustained = roof_kinds[kind].measure != ROOF_COMPUTE &&
                        (condition == ROOF_TOGETHER || !wants_together(node, kind));
    request.hold = node->held = condition == ROOF_TOGETHER;
    reply_init(&reply);
    if (ask(node, &request, &reply, &error))
        device_add_roof(&node->device, &reply.roof);
    else
        add_unmeasured(node, kind, condition, error.text);
    reply_clear(&reply);
}

/* What it sustains, once its burst is known. */
static void sustain(struct node *node, int kind, enum roof_condition condition)
{
    struct request request = request_default(REQUEST_ROOF);
    struct reply reply;
    struct error error;
    if (!node->tuned[kind])
        return;
    request.kind = kind;
    request.condition = condition;
    request.only_sustained = true;
    request.hold = node->held = condition == ROOF_TOGETHER;
    reply_init(&reply);
    if (ask(node, &request, &reply, &error))
        device_sustain_roof(&node->device, &reply.roof);
    reply_clear(&reply);
}

/* Where so many roofs are done, on this device or, meanwhile, on another. */
static void advance(struct node *node, size_t roofs)
{
    node->left -= roofs < node->left ? roofs : node->left;
    if (node->progress && !node->ranks.leaving)
        progress_update(node->progress, (struct progress_left){.count = node->left}, 0);
}

static bool wants_alone(const struct node *node, int kind)
{
    return node->settings->request.condition[ROOF_ALONE] ||
           node->owners[node->device_kind][kind] == 1;
}

/* Where a clock is low for a while after a load of the tensor units, the devices take turns at each of those roofs:
 * one rests while the others measure. */
static bool takes_rounds(int device_kind, int kind)
{
    return device_kinds[device_kind].clock_settles && roof_kinds[kind].measure == ROOF_COMPUTE &&
           roof_kinds[kind].unit == UNIT_TENSOR;
}

/* Launches and memory do not wait for power; what the multiprocessors compute lowers their clock for a while
 * after it. So it comes last. */
static int in_order(int place)
{
    static const enum roof_measure order[] = {ROOF_BANDWIDTH, ROOF_TIME, ROOF_COMPUTE};
    for (size_t i = 0; i < sizeof order / sizeof *order; ++i)
        for (int kind = 0; kind < ROOF_KINDS; ++kind)
            if (roof_kinds[kind].measure == order[i] && place-- == 0)
                return kind;
    return ROOF_KINDS;
}

/* s from the agreement to the common start. The slowest worker must be ready by then. Workers load their devices at
 * once, so that each clock has as long to settle, and of a bandwidth for as long as the power sensor needs. Devices
 * that are to rest are loaded right before the start. */
static double lead_of(int device_kind, int kind)
{
    const double ready = 0.04, sensor = 0.065, rest = 0.07;
    if (!device_kinds[device_kind].clock_settles)
        return 0.1; /* its ranks share the cores that they wake up on */
    return takes_rounds(device_kind, kind)              ? rest
           : roof_kinds[kind].measure == ROOF_BANDWIDTH ? sensor
                                                        : ready;
}

/* On a node with one device bandwidths get time before they begin: there it costs little, and the power sensor,
 * which is slow, can follow. */
static double start_alone(const struct node *node, int kind)
{
    bool senses =
        device_kinds[node->device_kind].clock_settles && roof_kinds[kind].measure == ROOF_BANDWIDTH;
    return senses && node->ranks.count == 1 ? clock_epoch() + lead_of(node->device_kind, kind)
                                            : 0.0;
}

/* Those that this device measures alone; others of its kind have about as many. */
static size_t count_alone(const struct node *node, bool in_rounds)
{
    size_t count = 0;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        count += node->found[kind] && wants_alone(node, kind) &&
                 takes_rounds(node->device_kind, kind) == in_rounds;
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
    node->turns = count_alone(node, false);
    node->left = (node->turns + count_alone(node, true)) * (size_t)node->ranks.count;
    for (int kind = 0; kind < DEVICE_KINDS; ++kind)
        node->left += count_together(node, kind);
    if (node->log->rank == 0 && node->left > 0)
        node->progress = progress_create(node->log, "roofs: ", 0, node->left);
}

static void measure_by_itself(struct node *node, int kind)
{
    if (!node->found[kind] || !wants_alone(node, kind) || *node->ranks.interrupted)
        return;
    measure(node, kind, ROOF_ALONE, start_alone(node, kind));
    advance(node, 1);
}

/* One device after the other, each all that takes no rounds. */
static void measure_in_turns(struct node *node)
{
    for (int turn = 0; turn < node->ranks.count && !node->ranks.leaving; ++turn) {
        for (int place = 0; place < ROOF_KINDS && turn == node->ranks.rank; ++place)
            if (!takes_rounds(node->device_kind, in_order(place)))
                measure_by_itself(node, in_order(place));
        gathering_wait(&node->ranks, 0.0);
        if (turn != node->ranks.rank)
            advance(node, node->turns);
    }
}

/* Whether any device of the node has this roof and measures it in rounds: all ranks say the same. */
static bool has_rounds(const struct node *node, int kind)
{
    for (int device = 0; device < DEVICE_KINDS; ++device)
        if (takes_rounds(device, kind) && node->owners[device][kind] > 0 &&
            (node->owners[device][kind] == 1 || node->settings->request.condition[ROOF_ALONE]))
            return true;
    return false;
}

static void measure_in_rounds(struct node *node)
{
    for (int kind = 0; kind < ROOF_KINDS && !node->ranks.leaving; ++kind)
        for (int turn = 0;
             turn < node->ranks.count && !node->ranks.leaving && has_rounds(node, kind); ++turn) {
            if (turn == node->ranks.rank && takes_rounds(node->device_kind, kind))
                measure_by_itself(node, kind);
            else
                advance(node, 1);
            gathering_wait(&node->ranks, 0.0);
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

/* When all are ready for the next roof, the devices of the kind do it. */
static void come_together(struct node *node, int device_kind, int kind)
{
    double start = gathering_wait(&node->ranks, clock_epoch() + lead_of(device_kind, kind));
    if (node->device_kind == device_kind && node->found[kind] && !node->ranks.leaving)
        measure(node, kind, ROOF_TOGETHER, start);
    else
        rest(node);
}

static void measure_together(struct node *node, int device_kind)
{
    for (int place = 0; place < ROOF_KINDS && !node->ranks.leaving; ++place)
        if (is_shared(node, device_kind, in_order(place))) {
            come_together(node, device_kind, in_order(place));
            advance(node, 1);
        }
    if (!node->ranks.leaving)
        gathering_wait(&node->ranks, 0.0);
    rest(node);
}

/* ---- what is sustained ---- */

/* Together, where devices do it together, else alone. 0: there is none. */
static double burst_of(const struct node *node, int kind)
{
    const enum roof_condition condition = wants_together(node, kind) ? ROOF_TOGETHER : ROOF_ALONE;
    for (int64_t i = 0; i < node->device.roof_count; ++i) {
        const struct roof *roof = &node->device.roofs[i];
        if (roof->kind.index == kind && roof->condition == (int64_t)condition &&
            roof->performance > 0)
            return roof->performance;
    }
    return 0;
}

/* No other way to the same precision and unit is faster. All devices of a kind agree on it, because they measure
 * together. */
static bool is_fastest(const double rates[ROOF_KINDS], int kind)
{
    const struct roof_kind *own = &roof_kinds[kind];
    for (int other = 0; other < ROOF_KINDS; ++other)
        if (roof_kinds[other].measure == ROOF_COMPUTE &&
            roof_kinds[other].precision == own->precision && roof_kinds[other].unit == own->unit &&
            rates[other] > rates[kind])
            return false;
    return own->measure == ROOF_COMPUTE && rates[kind] > 0;
}

/* What a device sustains is that of its fastest ways: until the clock has settled takes far longer than a
 * burst. */
static void choose_sustained(struct node *node)
{
    enum { COUNT = DEVICE_KINDS * ROOF_KINDS };
    double *own = node->rates, *sums = own + COUNT;
    MPI_Request request;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        own[node->device_kind * ROOF_KINDS + kind] = burst_of(node, kind);
    MPI_Iallreduce(own, sums, COUNT, MPI_DOUBLE, MPI_SUM, node->ranks.comm, &request);
    if (!gathering_await(&node->ranks, request))
        return;
    for (int i = 0; i < COUNT; ++i)
        node->sustains[i / ROOF_KINDS][i % ROOF_KINDS] =
            device_kinds[i / ROOF_KINDS].clock_settles &&
            is_fastest(sums + i / ROOF_KINDS * ROOF_KINDS, i % ROOF_KINDS);
}

/* Whether any device of the node sustains something alone: all ranks say the same. */
static bool any_sustained_alone(const struct node *node)
{
    for (int device = 0; device < DEVICE_KINDS; ++device)
        for (int kind = 0; kind < ROOF_KINDS; ++kind)
            if (node->sustains[device][kind] && !is_shared(node, device, kind))
                return true;
    return false;
}

/* In turns. */
static void sustain_alone(struct node *node)
{
    for (int turn = 0; turn < node->ranks.count && !node->ranks.leaving; ++turn) {
        for (int kind = 0; kind < ROOF_KINDS && turn == node->ranks.rank; ++kind)
            if (node->found[kind] && node->sustains[node->device_kind][kind] &&
                !wants_together(node, kind) && !*node->ranks.interrupted)
                sustain(node, kind, ROOF_ALONE);
        gathering_wait(&node->ranks, 0.0);
    }
}

static bool any_sustained_together(const struct node *node, int device_kind)
{
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        if (node->sustains[device_kind][kind] && is_shared(node, device_kind, kind))
            return true;
    return false;
}

/* One behind the other, without a pause: each finds the device as the one before has left it, under load. Who has
 * settled goes on: the neighbours find it at work, be it with the next roof, until the last one has done. */
static void sustain_together(struct node *node, int device_kind)
{
    gathering_wait(&node->ranks, 0.0);
    for (int kind = 0; kind < ROOF_KINDS && node->device_kind == device_kind; ++kind)
        if (node->found[kind] && node->sustains[device_kind][kind] && wants_together(node, kind) &&
            !node->ranks.leaving && !*node->ranks.interrupted)
            sustain(node, kind, ROOF_TOGETHER);
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

/* How long each part of it took. */
static void log_part(struct node *node, const char *part)
{
    const double now = clock_monotonic();
    if (node->ranks.rank == 0 && !node->settings->skip)
        log_print(node->log, LOG_DEBUG, "roofs of %s: %s in %.2f s", node->device.hostname, part,
                  now - node->part_began);
    node->part_began = now;
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
    node->members = calloc(ranks, sizeof *node->members);
    return node->rates && node->way && node->ways && node->models && node->members;
}

static void exchange_free(struct node *node)
{
    free(node->rates);
    free(node->way);
    free(node->ways);
    free(node->models);
    free(node->members);
}

/* The ranks of the node, and the models of their devices. */
static void node_open(struct node *node, MPI_Comm comm, const struct watchdog_settings *guard)
{
    if (!gathering_open(&node->ranks, comm, guard) || !exchange_create(node))
        MPI_Abort(comm, 1);
    struct watchdog *watchdog = watchdog_begin(guard);
    node_compare_models(node);
    watchdog_end(watchdog);
}

/* What each device has, and how many of each kind have it. */
static void node_find(struct node *node, const struct watchdog_settings *guard)
{
    node_tune(node);
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
    measure_in_turns(node);
    measure_in_rounds(node);
    log_part(node, "each device alone");
    for (int kind = 0; kind < DEVICE_KINDS; ++kind)
        measure_together(node, kind);
    log_part(node, "all together");
    if (!node->ranks.leaving)
        choose_sustained(node);
    if (!node->ranks.leaving && any_sustained_alone(node))
        sustain_alone(node);
    for (int kind = 0; kind < DEVICE_KINDS && !node->ranks.leaving; ++kind)
        if (any_sustained_together(node, kind))
            sustain_together(node, kind);
    log_part(node, "sustained");
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
    node.part_began = clock_monotonic();
    node_find(&node, &guard);
    log_part(&node, "fastest ways, with their proofs");
    node_measure(&node);
    if (gathering_close(&node.ranks, &guard))
        exchange_free(&node);
    if (settings->skip)
        return;
    release(&node);
    device_order_roofs(&node.device);
    executor_set_roofs(executor, &node.device);
}
