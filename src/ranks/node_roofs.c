/* Measures the roofs of a node in lockstep: tuned, alone, together, sustained, links.
 *
 * Set-up: the ranks of a node get a communicator and a struct node each; node_find tunes the
 * devices and counts the devices that have each roof, so that all ranks follow the same schedule.
 * Failure: a lost worker is replaced and tuned again; its roof is left unmeasured with the reason.
 * After LOSSES_MAX lost workers a device gets no more roofs. A signal or a rank that does not come
 * makes all ranks leave with the roofs so far. Cost: seconds to minutes; a device idles while its
 * neighbours measure alone. Waiting ranks sleep. */
#include "ranks/node_roofs.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ranks/links.h"
#include "ranks/liveness.h"
#include "ranks/progress.h"

/* s; limit of a collective call right after all ranks have met */
static const int call_timeout = 60;
/* limit of tuning, which tries many variants of all roofs, in units of the settings' timeout */
static const double tune_timeouts = 3;
enum { LOSSES_MAX = 3 }; /* number of lost workers after which a device gets no more roofs */

/* A rank within its node. On the heap, because MPI still writes to the buffers of an abandoned call
 * when the last rank arrives. */
struct node {
    struct executor *executor;
    const struct node_roofs_settings *settings;
    const struct log *log;
    MPI_Comm comm, all; /* all: all ranks of the job, if links are measured */
    int rank, count;
    bool leaving;   /* leave early: a rank was interrupted or timed out */
    bool abandoned; /* timed out: a collective call is pending, no other may follow */
    struct {
        double moment, interrupted;
    } own, latest; /* buffers of node_wait: this rank's values; their maxima over the node */

    struct device device;   /* executor's device with the roofs so far */
    int device_kind;        /* index into device_kinds */
    bool found[ROOF_KINDS]; /* roofs of this device, except those over which a worker was lost */
    bool tuned[ROOF_KINDS]; /* roofs that the current worker has tuned */
    /* Number of devices of the node with the roof, by kind of device: a GPU's "dram read" is not a
     * CPU's. */
    int owners[DEVICE_KINDS][ROOF_KINDS];
    double bursts[DEVICE_KINDS][ROOF_KINDS], burst_sums[DEVICE_KINDS][ROOF_KINDS];
    /* Compute roofs to measure again once the clock has settled. */
    bool sustains[DEVICE_KINDS][ROOF_KINDS];
    bool kept_busy; /* the worker repeats its last roof until the next request */
    int losses;     /* lost workers of this rank */

    struct progress *progress; /* rank 0 of the job; else NULL */
    size_t left;               /* roofs of the node that are not measured yet */
    double part_began;         /* s, clock_monotonic: begin of the part that log_part reports */
    size_t alone_roofs;        /* number of roofs that this device measures in its turn */
};

/* Waits for a collective call. False: timeout; the call is abandoned. */
static bool node_await(struct node *node, MPI_Request request)
{
    if (liveness_wait(&request, 1, &node->settings->wait_limit))
        return true;
    log_print(node->log, LOG_WARNING,
              "%s: a rank of this node does not come to the next roof; the others leave it",
              node->device.hostname);
    node->leaving = node->abandoned = true;
    return false;
}

/* Waits for all ranks of the node and returns the latest `moment`. */
static double node_wait(struct node *node, double moment)
{
    MPI_Request request;
    node->own.moment = moment;
    node->own.interrupted = *node->settings->wait_limit.signal != 0;
    MPI_Iallreduce(&node->own, &node->latest, 2, MPI_DOUBLE, MPI_MAX, node->comm, &request);
    if (!node_await(node, request))
        return moment;
    node->leaving = node->latest.interrupted > 0;
    return node->latest.moment;
}

/* ---- tuning ---- */

/* Also tries the counters. A failure costs roofs and derived values; rows are still measured. */
static enum status tune(struct node *node)
{
    struct request request = request_default(REQUEST_TUNE);
    struct reply reply;
    struct error error;
    memset(node->tuned, 0, sizeof node->tuned);
    request.peaks =
        node->settings->skip ? (struct roof_request){.links = false} : node->settings->request;
    request.prove = node->settings->prove;
    reply_init(&reply);
    enum status status = executor_call(node->executor, &request, REPLY_ROOFS,
                                       tune_timeouts * node->settings->timeout, &reply, &error);
    if (status == STATUS_OK) {
        memcpy(node->tuned, reply.found, sizeof node->tuned);
        node->device.counters = reply.device.counters;
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
    return executor_reopen(node->executor, &error) == STATUS_OK && ++node->losses < LOSSES_MAX;
}

static void tune_with_retries(struct node *node)
{
    while (tune(node) == STATUS_DEVICE)
        if (!replace_worker(node))
            return;
}

/* ---- measuring ---- */

/* True if devices of this kind measure the roof together. Equal on all ranks. */
static bool is_together(const struct node *node, int device_kind, int kind)
{
    return node->owners[device_kind][kind] > 1 && node->settings->request.condition[ROOF_TOGETHER];
}

/* Measures a roof. False: no reply; *error has the reason. Replaces and tunes a lost worker, but
 * does not repeat the roof. */
static bool call_roof(struct node *node, const struct request *request, struct reply *reply,
                      struct error *error)
{
    enum status status =
        executor_call(node->executor, request, REPLY_ROOF, node->settings->timeout, reply, error);
    if (status == STATUS_DEVICE) {
        log_print(node->log, LOG_WARNING, "%s on %s: roof %s, %s: %s", node->device.uuid,
                  node->device.hostname, roof_kinds[request->kind].name,
                  roof_condition_name[request->condition], error->text);
        node->found[request->kind] = false;
        memset(node->tuned, 0, sizeof node->tuned);
        if (replace_worker(node))
            tune_with_retries(node);
    }
    return status == STATUS_OK;
}

/* Repeats a roof measured alone if its samples differ too much, as samples of copies do while the
 * host is busy. Keeps the measurement whose samples differ less. */
static void measure_again(struct node *node, struct request *request, struct roof *roof)
{
    struct reply reply;
    struct error error;
    if (request->condition != ROOF_ALONE || !device_kinds[node->device_kind].clock_settles ||
        roof_kinds[request->kind].measure == ROOF_TIME || !(roof->spread > ROOF_DISTURBED))
        return;
    request->start = 0;
    reply_init(&reply);
    if (call_roof(node, request, &reply, &error) && reply.roof.spread < roof->spread)
        *roof = reply.roof;
    reply_clear(&reply);
}

/* Measures a roof's value or burst; with only_sustained, the sustained rate of a roof with a
 * burst. */
static void measure(struct node *node, int kind, enum roof_condition condition, double start,
                    bool only_sustained)
{
    struct request request = request_default(REQUEST_ROOF);
    struct reply reply;
    struct error error = {"its workers were lost over other roofs"};
    bool answered = false;
    request.kind = kind;
    request.condition = condition;
    request.start = start;
    request.only_sustained = only_sustained;
    request.sustained =
        only_sustained ||
        (roof_kinds[kind].measure != ROOF_COMPUTE &&
         (condition == ROOF_TOGETHER || !is_together(node, node->device_kind, kind)));
    request.peaks.energy =
        request.sustained &&
        node->settings->request.energy; /* energy is measured once for each roof */
    request.keep_busy = condition == ROOF_TOGETHER;
    reply_init(&reply);
    if (node->tuned[kind]) {
        node->kept_busy = request.keep_busy;
        answered = call_roof(node, &request, &reply, &error);
    }
    if (answered && only_sustained) {
        device_sustain_roof(&node->device, &reply.roof);
    } else if (!only_sustained) {
        if (answered)
            measure_again(node, &request, &reply.roof);
        else
            roof_set_unmeasured(&reply.roof, kind, condition, clock_date(), error.text);
        device_add_roof(&node->device, &reply.roof);
    }
    reply_clear(&reply);
}

/* Sends a request that ends work on roofs; ignores the reply. */
static void call_and_log(struct node *node, enum request_op op, enum reply_kind kind,
                         const char *failed)
{
    struct request request = request_default(op);
    struct reply reply;
    struct error error;
    node->kept_busy = false;
    reply_init(&reply);
    if (executor_call(node->executor, &request, kind, node->settings->timeout, &reply, &error))
        log_print(node->log, LOG_DEBUG, "%s: %s", failed, error.text);
    reply_clear(&reply);
}

/* Ends the work that has kept the device busy until all ranks have their samples. Any request ends
 * it. */
static void stop_busy_work(struct node *node)
{
    if (node->kept_busy)
        call_and_log(node, REQUEST_DEVICES, REPLY_DEVICES, "the last roof went on");
}

/* Number of this device's roofs without a value; *first is the first one, else unchanged. */
static size_t count_failed(const struct node *node, const struct roof **first)
{
    size_t count = 0;
    for (int64_t i = 0; i < node->device.roof_count; ++i)
        if (isnan(roof_value(&node->device.roofs[i])) && count++ == 0)
            *first = &node->device.roofs[i];
    return count;
}

static void report_done(struct node *node, size_t roofs)
{
    const struct roof *first = NULL;
    node->left -= roofs < node->left ? roofs : node->left;
    if (node->progress && !node->leaving)
        progress_update(node->progress, (struct progress_left){.count = node->left},
                        count_failed(node, &first));
}

static bool wants_alone(const struct node *node, int kind)
{
    return node->settings->request.condition[ROOF_ALONE] ||
           node->owners[node->device_kind][kind] == 1;
}

/* Tensor work lowers the clock of some devices for a while: they take turns roof by roof, so that
 * each rests while others measure. */
static bool takes_rounds(int device_kind, int kind)
{
    return device_kinds[device_kind].clock_settles && roof_kinds[kind].measure == ROOF_COMPUTE &&
           roof_kinds[kind].unit == UNIT_TENSOR;
}

/* Order of measurement: bandwidths, times, compute. Only computing lowers the clock for a while. */
static int nth_roof(int place)
{
    static const enum roof_measure order[] = {ROOF_BANDWIDTH, ROOF_TIME, ROOF_COMPUTE};
    for (size_t i = 0; i < sizeof order / sizeof *order; ++i)
        for (int kind = 0; kind < ROOF_KINDS; ++kind)
            if (roof_kinds[kind].measure == order[i] && place-- == 0)
                return kind;
    return ROOF_KINDS;
}

/* Returns the time from the agreement to the common start, s. The slowest worker must be ready, and
 * clocks need equal time to settle. Devices that must rest get their load shortly before the start.
 */
static double lead_time(int device_kind, int kind)
{
    if (!device_kinds[device_kind].clock_settles)
        return 0.1; /* ranks that share cores wake up slowly */
    return takes_rounds(device_kind, kind) ? 0.07 : 0.04;
}

/* Number of roofs that this device measures alone; other devices of its kind have about as many. */
static size_t count_alone(const struct node *node, bool in_rounds)
{
    size_t count = 0;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        count += node->found[kind] && wants_alone(node, kind) &&
                 takes_rounds(node->device_kind, kind) == in_rounds;
    return count;
}

static void measure_alone(struct node *node, int kind)
{
    if (!node->found[kind] || !wants_alone(node, kind) || *node->settings->wait_limit.signal)
        return;
    measure(node, kind, ROOF_ALONE, 0, false);
    report_done(node, 1);
}

static void measure_in_turns(struct node *node)
{
    for (int turn = 0; turn < node->count && !node->leaving; ++turn) {
        for (int place = 0; place < ROOF_KINDS && turn == node->rank; ++place)
            if (!takes_rounds(node->device_kind, nth_roof(place)))
                measure_alone(node, nth_roof(place));
        node_wait(node, 0);
        if (turn != node->rank)
            report_done(node, node->alone_roofs);
    }
}

/* True if any device of the node measures this roof in rounds. Equal on all ranks. */
static bool any_in_rounds(const struct node *node, int kind)
{
    for (int device = 0; device < DEVICE_KINDS; ++device)
        if (takes_rounds(device, kind) && node->owners[device][kind] > 0 &&
            (node->owners[device][kind] == 1 || node->settings->request.condition[ROOF_ALONE]))
            return true;
    return false;
}

static void measure_in_rounds(struct node *node)
{
    for (int kind = 0; kind < ROOF_KINDS && !node->leaving; ++kind)
        for (int turn = 0; turn < node->count && !node->leaving && any_in_rounds(node, kind);
             ++turn) {
            if (turn == node->rank && takes_rounds(node->device_kind, kind))
                measure_alone(node, kind);
            else
                report_done(node, 1);
            node_wait(node, 0);
        }
}

static void measure_together(struct node *node, int device_kind)
{
    for (int place = 0; place < ROOF_KINDS && !node->leaving; ++place) {
        const int kind = nth_roof(place);
        if (!is_together(node, device_kind, kind))
            continue;
        double start = node_wait(node, clock_epoch() + lead_time(device_kind, kind));
        if (node->device_kind == device_kind && node->found[kind] && !node->leaving)
            measure(node, kind, ROOF_TOGETHER, start, false);
        else
            stop_busy_work(node);
        report_done(node, 1);
    }
    if (!node->leaving)
        node_wait(node, 0);
    stop_busy_work(node);
}

/* ---- sustained ---- */

/* Returns the device's burst, s-1: measured together if wanted, else alone; 0: none. */
static double burst_of(const struct node *node, int kind)
{
    const enum roof_condition condition =
        is_together(node, node->device_kind, kind) ? ROOF_TOGETHER : ROOF_ALONE;
    for (int64_t i = 0; i < node->device.roof_count; ++i) {
        const struct roof *roof = &node->device.roofs[i];
        if (roof->kind.index == kind && roof->condition == (int64_t)condition &&
            roof->performance > 0)
            return roof->performance;
    }
    return 0;
}

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

/* Selects the fastest roof of each precision and unit, because settling takes far longer than a
 * burst. The sum of the bursts decides for all devices of a kind, because they measure together. */
static void select_sustained(struct node *node)
{
    MPI_Request request;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        node->bursts[node->device_kind][kind] = burst_of(node, kind);
    MPI_Iallreduce(node->bursts, node->burst_sums, DEVICE_KINDS * ROOF_KINDS, MPI_DOUBLE, MPI_SUM,
                   node->comm, &request);
    if (!node_await(node, request))
        return;
    for (int device = 0; device < DEVICE_KINDS; ++device)
        for (int kind = 0; kind < ROOF_KINDS; ++kind)
            node->sustains[device][kind] =
                device_kinds[device].clock_settles && is_fastest(node->burst_sums[device], kind);
}

/* True if any device of the node has sustained roofs under this condition. Equal on all ranks. */
static bool any_sustained(const struct node *node, bool together)
{
    for (int device = 0; device < DEVICE_KINDS; ++device)
        for (int kind = 0; kind < ROOF_KINDS; ++kind)
            if (node->sustains[device][kind] && is_together(node, device, kind) == together)
                return true;
    return false;
}

/* Measures sustained rates without pauses, so that each roof finds the device loaded by the
 * previous one. */
static void sustain(struct node *node, enum roof_condition condition)
{
    const bool together = condition == ROOF_TOGETHER;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        if (node->found[kind] && node->tuned[kind] && node->sustains[node->device_kind][kind] &&
            is_together(node, node->device_kind, kind) == together && !node->leaving &&
            !*node->settings->wait_limit.signal)
            measure(node, kind, condition, 0, true);
}

/* Devices that have settled continue until the last has settled, so that neighbours stay loaded. */
static void sustain_together(struct node *node, int device_kind)
{
    node_wait(node, 0);
    if (node->device_kind == device_kind)
        sustain(node, ROOF_TOGETHER);
    if (!node->leaving)
        node_wait(node, 0);
    stop_busy_work(node);
}

/* ---- a node ---- */

static void log_part(struct node *node, const char *part)
{
    const double now = clock_monotonic();
    if (node->rank == 0 && !node->settings->skip)
        log_print(node->log, LOG_DEBUG, "roofs of %s: %s in %.2f s", node->device.hostname, part,
                  now - node->part_began);
    node->part_began = now;
}

/* Splits `comm` by nodes: ranks that share memory and the name of the host. */
static struct node *node_create(MPI_Comm comm, struct executor *executor,
                                const struct node_roofs_settings *settings, const struct log *log,
                                const struct guard_settings *bound)
{
    struct node *node = memory_require(comm, calloc(1, sizeof *node), "a node");
    struct guard *guard = guard_begin(bound);
    *node = (struct node){.executor = executor,
                          .settings = settings,
                          .log = log,
                          .device = *executor_device(executor),
                          .device_kind = (int)(executor_kind(executor) - device_kinds)};
    MPI_Comm shared;
    unsigned hash = 0;
    for (const char *c = node->device.hostname; *c; ++c)
        hash = hash * 31 + (unsigned char)*c;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
    MPI_Comm_split(shared, (int)(hash & INT_MAX), 0, &node->comm);
    MPI_Comm_free(&shared);
    if (settings->request.links)
        MPI_Comm_dup(comm, &node->all);
    MPI_Comm_rank(node->comm, &node->rank);
    MPI_Comm_size(node->comm, &node->count);
    guard_end(guard);
    return node;
}

static void node_find(struct node *node, const struct guard_settings *bound)
{
    int found[DEVICE_KINDS][ROOF_KINDS] = {{0}};
    if (!executor_lost(node->executor) && (!node->settings->skip || node->settings->prove))
        tune_with_retries(node);
    memcpy(node->found, node->tuned, sizeof node->found);
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        found[node->device_kind][kind] = node->found[kind];
    if (!node->abandoned)
        node_wait(node, 0);
    struct guard *guard = guard_begin(bound);
    if (!node->abandoned)
        MPI_Allreduce(found, node->owners, DEVICE_KINDS * ROOF_KINDS, MPI_INT, MPI_SUM, node->comm);
    guard_end(guard);
    log_part(node, "fastest variants, with their proofs");
}

/* Ranks that share a node's memory are disturbed together, so only one of them warns. */
static void warn_of_disturbed(const struct node *node)
{
    const struct device *device = &node->device;
    const bool warns = node->rank == 0 || !device_kinds[node->device_kind].shares_memory;
    int disturbed = 0;
    for (int64_t i = 0; i < device->roof_count; ++i)
        disturbed += roof_disturbance(&device->roofs[i]) > ROOF_DISTURBED;
    if (disturbed > 0 && warns)
        log_print(node->log, LOG_WARNING,
                  "%s on %s: other work disturbed %d of %d roofs, which may be too low: their "
                  "samples differ by more than 20 %%; measure again when the host is idle",
                  device->uuid, device->hostname, disturbed, (int)device->roof_count);
}

static void warn_of_failed(const struct node *node)
{
    const struct device *device = &node->device;
    const struct roof *first = NULL;
    const size_t failed = count_failed(node, &first);
    if (failed > 0)
        log_print(node->log, LOG_WARNING, "%s on %s: %zu of %d roofs have no value: %s, %s: %s",
                  device->uuid, device->hostname, failed, (int)device->roof_count, roof_name(first),
                  roof_condition_name[first->condition], first->setting);
}

static void node_measure(struct node *node)
{
    node->alone_roofs = count_alone(node, false);
    node->left = (node->alone_roofs + count_alone(node, true)) * (size_t)node->count;
    for (int device = 0; device < DEVICE_KINDS; ++device)
        for (int kind = 0; kind < ROOF_KINDS; ++kind)
            node->left += is_together(node, device, kind);
    if (node->log->rank == 0 && node->left > 0)
        node->progress = progress_create(node->log, "roofs: ", 0, node->left);
    measure_in_turns(node);
    measure_in_rounds(node);
    log_part(node, "each device alone");
    for (int kind = 0; kind < DEVICE_KINDS; ++kind)
        measure_together(node, kind);
    log_part(node, "all together");
    if (!node->leaving)
        select_sustained(node);
    for (int turn = 0; turn < node->count && any_sustained(node, false) && !node->leaving; ++turn) {
        if (turn == node->rank)
            sustain(node, ROOF_ALONE);
        node_wait(node, 0);
    }
    for (int kind = 0; kind < DEVICE_KINDS && any_sustained(node, true) && !node->leaving; ++kind)
        sustain_together(node, kind);
    log_part(node, "sustained");
    progress_destroy(node->progress);
}

void node_roofs_measure(MPI_Comm comm, struct executor *executor,
                        const struct node_roofs_settings *settings, const struct log *log)
{
    const struct guard_settings bound = {comm, log, call_timeout, 1, "finding the node's ranks"};
    const bool *wanted = settings->request.condition;
    struct node *node = node_create(comm, executor, settings, log, &bound);
    const bool several = node->count > 1;
    if (!settings->skip)
        log_print(log, LOG_INFO, "measuring the roofs of %d device%s%s%s", node->count,
                  several ? "s of this node" : "",
                  several && wanted[ROOF_ALONE] ? ", each alone" : "",
                  several && wanted[ROOF_TOGETHER] ? ", all together" : "");
    node->part_began = clock_monotonic();
    node_find(node, &bound);
    node_measure(node);
    if (!settings->skip) {
        call_and_log(node, REQUEST_RELEASE, REPLY_ROOFS, "roofs not released");
        device_order_roofs(&node->device);
        warn_of_disturbed(node);
        warn_of_failed(node);
    }
    if (settings->request.links &&
        !links_measure(node->all, node->comm, executor, &settings->wait_limit, node->leaving, log))
        node->abandoned = true;
    log_part(node, "links");
    executor_set_roofs(executor, &node->device);
    if (node->abandoned)
        return;
    struct guard *guard = guard_begin(&bound);
    MPI_Comm_free(&node->comm);
    if (settings->request.links)
        MPI_Comm_free(&node->all);
    guard_end(guard);
    free(node);
}
