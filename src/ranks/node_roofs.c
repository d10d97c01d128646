#include "ranks/node_roofs.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"

static const double tune_timeout = 300, roof_timeout = 60; /* s */
/* s from the agreement to the common start: the slowest worker must be ready by then. The load begins
 * at once, so that it is also what a device's clock has to settle in. */
static const double lead = 0.05;
/* After so many lost workers a device gets no more roofs. */
enum { LOSSES_MOST = 3 };
/* Only devices of one kind do the same: what a GPU and a CPU call "dram read" are two things. */
enum { SPECIES = 2 };

struct party {
    MPI_Comm node;
    int rank, count;
    struct executor *executor;
    const struct node_roofs_settings *settings;
    const volatile sig_atomic_t *interrupted;
    const struct log *log;
    struct device device;            /* the executor's, with the roofs so far */
    int species;                     /* of this device */
    bool found[ROOF_KINDS];          /* of this device; not those that a worker was lost over */
    bool tuned[ROOF_KINDS];          /* of them, those that the present worker can measure */
    int owners[SPECIES][ROOF_KINDS]; /* devices of the node that have it */
    int losses;                      /* of this rank's workers */
    bool leaving;                    /* some rank was interrupted */
};

/* All ranks of the node arrive, and know the latest of the moments that they bring. The waiting
 * ranks sleep: MPI's own waiting would take the cores of whoever is being measured. */
static double meet(struct party *party, double moment)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    double own[] = {moment, *party->interrupted != 0}, all[2];
    MPI_Request request;
    int done = 0;
    MPI_Iallreduce(own, all, 2, MPI_DOUBLE, MPI_MAX, party->node, &request);
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
         MPI_Test(&request, &done, MPI_STATUS_IGNORE))
        nanosleep(&nap, NULL);
    party->leaving = all[1] > 0.0;
    return all[0];
}

/* No roofs are a loss for what is derived from them, not a reason to measure nothing. */
static enum status tune(struct party *party)
{
    struct request request = request_default(REQUEST_TUNE);
    struct reply reply;
    struct error error;
    memset(party->tuned, 0, sizeof party->tuned);
    request.peaks = party->settings->request;
    request.prove = party->settings->prove;
    reply_init(&reply);
    enum status status =
        executor_ask(party->executor, &request, REPLY_ROOFS, tune_timeout, &reply, &error);
    if (status == STATUS_OK)
        memcpy(party->tuned, reply.found, sizeof party->tuned);
    else
        log_print(party->log, LOG_WARNING, "%s on %s: roofs not tuned: %s", party->device.uuid,
                  party->device.hostname, error.text);
    reply_clear(&reply);
    return status;
}

/* False: the device gets no more roofs. */
static bool replace_worker(struct party *party)
{
    struct error error;
    return executor_reopen(party->executor, &error) == STATUS_OK && ++party->losses < LOSSES_MOST;
}

/* A lost worker takes what was tuned with it: a new one tunes anew. */
static void tune_until_done(struct party *party)
{
    while (tune(party) == STATUS_DEVICE)
        if (!replace_worker(party))
            return;
}

/* The roof that a worker was lost over is not tried again. */
static void recover(struct party *party, int lost_over)
{
    party->found[lost_over] = false;
    memset(party->tuned, 0, sizeof party->tuned);
    if (replace_worker(party))
        tune_until_done(party);
}

static void add_unmeasured(struct party *party, int kind, enum roof_condition condition,
                           const char *why)
{
    struct roof roof;
    roof_set_unmeasured(&roof, kind, condition, clock_epoch(), why);
    device_add_roof(&party->device, &roof);
}

static void measure(struct party *party, int kind, enum roof_condition condition, double start)
{
    struct request request = request_default(REQUEST_ROOF);
    struct reply reply;
    struct error error;
    if (!party->tuned[kind]) {
        add_unmeasured(party, kind, condition, "its workers were lost over other roofs");
        return;
    }
    request.kind = kind;
    request.condition = condition;
    request.start = start;
    reply_init(&reply);
    enum status status =
        executor_ask(party->executor, &request, REPLY_ROOF, roof_timeout, &reply, &error);
    if (status == STATUS_OK)
        device_add_roof(&party->device, &reply.roof);
    else
        add_unmeasured(party, kind, condition, error.text);
    if (status == STATUS_DEVICE) {
        log_print(party->log, LOG_WARNING, "%s on %s: roof %s, %s: %s", party->device.uuid,
                  party->device.hostname, roof_kinds[kind].name, roof_condition_name[condition],
                  error.text);
        recover(party, kind);
    }
    reply_clear(&reply);
}

static bool wants_alone(const struct party *party, int kind)
{
    return party->settings->request.condition[ROOF_ALONE] ||
           party->owners[party->species][kind] == 1;
}

/* Tensor units draw so much that the clock still falls when others have settled: alone they get as
 * long as together, so that the neighbours are all that differs. On a node of one GPU there is time
 * for as much with all roofs, and then the power sensor follows. */
static double start_alone(const struct party *party, int kind)
{
    const struct roof_kind *info = &roof_kinds[kind];
    bool tensor = info->measure == ROOF_COMPUTE && info->unit == UNIT_TENSOR;
    bool long_enough = party->species == 0 && (tensor || party->count == 1);
    return long_enough ? clock_epoch() + lead : 0.0;
}

static void measure_alone(struct party *party)
{
    for (int turn = 0; turn < party->count && !party->leaving; ++turn) {
        for (int kind = 0; kind < ROOF_KINDS && turn == party->rank; ++kind)
            if (party->found[kind] && wants_alone(party, kind) && !*party->interrupted)
                measure(party, kind, ROOF_ALONE, start_alone(party, kind));
        meet(party, 0.0);
    }
}

static void measure_together(struct party *party, int species)
{
    for (int kind = 0; kind < ROOF_KINDS && !party->leaving; ++kind) {
        if (party->owners[species][kind] < 2 || !party->settings->request.condition[ROOF_TOGETHER])
            continue;
        double start = meet(party, clock_epoch() + lead);
        if (party->species == species && party->found[kind] && !party->leaving)
            measure(party, kind, ROOF_TOGETHER, start);
    }
}

/* They hold memory, and of GPUs a context on the next one, which would look like a stranger's. */
static void release(struct party *party)
{
    struct request request = request_default(REQUEST_RELEASE);
    struct reply reply;
    struct error error;
    reply_init(&reply);
    if (executor_ask(party->executor, &request, REPLY_ROOFS, roof_timeout, &reply, &error))
        log_print(party->log, LOG_DEBUG, "roofs not released: %s", error.text);
    reply_clear(&reply);
}

void node_roofs_measure(MPI_Comm comm, struct executor *executor,
                        const struct node_roofs_settings *settings,
                        const volatile sig_atomic_t *interrupted, const struct log *log)
{
    struct party party = {
        .executor = executor,
        .settings = settings,
        .interrupted = interrupted,
        .log = log,
        .device = *executor_device(executor),
    };
    party.species = strcmp(party.device.kind, "cpu") == 0;
    int found[SPECIES][ROOF_KINDS] = {{0}};
    const bool *wanted = settings->request.condition;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &party.node);
    MPI_Comm_rank(party.node, &party.rank);
    MPI_Comm_size(party.node, &party.count);
    if (!settings->skip) {
        log_print(log, LOG_INFO, "measuring the roofs of %d device%s%s%s", party.count,
                  party.count == 1 ? "" : "s of this node",
                  party.count > 1 && wanted[ROOF_ALONE] ? ", each alone" : "",
                  party.count > 1 && wanted[ROOF_TOGETHER] ? ", all together" : "");
        tune_until_done(&party);
    }
    memcpy(party.found, party.tuned, sizeof party.found);
    meet(&party, 0.0);
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        found[party.species][kind] = party.found[kind];
    MPI_Allreduce(found, party.owners, SPECIES * ROOF_KINDS, MPI_INT, MPI_SUM, party.node);
    measure_alone(&party);
    for (int species = 0; species < SPECIES; ++species)
        measure_together(&party, species);
    MPI_Comm_free(&party.node);
    if (settings->skip)
        return;
    release(&party);
    executor_set_roofs(executor, &party.device);
}
