#include "ranks/links.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stats.h"
#include "ranks/liveness.h"

enum {
    LIMIT = 60,   /* s; limit of a collective call right after all ranks have met, and of NCCL */
    REPEAT = 100, /* most runs of a sample by MPI */
    SLOTS = LINK_PAIR * LINK_ROUNDS + LINK_OPERATIONS * LINK_SIZES /* links of a rank, at most */
};

/* State of this rank. On the heap, because MPI still writes to the buffers of an abandoned call. */
struct links {
    struct executor *executor;
    const struct wait_limit *limit;
    const struct log *log;
    MPI_Comm all;
    int leaving, any_leaving; /* arguments of meet */
    bool by_nccl;
    int nodes, least;               /* number of nodes; number of ranks of the smallest node */
    int rounds, peers[LINK_ROUNDS]; /* rank that this rank exchanges with in a round; -1: none */
    struct link_list found;         /* links of the last group */
};

int links_rounds(int nodes)
{
    const int rounds = nodes - 1 + nodes % 2;
    return nodes < 2 ? 0 : rounds < LINK_ROUNDS ? rounds : LINK_ROUNDS;
}

/* The circle method: nodes turn by one place a round; if `nodes` is even, the last node stands. */
int links_round(int one, int other, int nodes)
{
    const int last = nodes - 1 + nodes % 2; /* number of nodes that turn, odd */
    return (one == last ? 2 * other : other == last ? 2 * one : one + other) % last;
}

/* Waits for all ranks. False: a rank is leaving, or does not come. */
static bool meet(struct links *links, MPI_Comm comm)
{
    MPI_Request request;
    links->leaving |= links->any_leaving || *links->limit->signal != 0;
    MPI_Iallreduce(&links->leaving, &links->any_leaving, 1, MPI_INT, MPI_MAX, comm, &request);
    if (!liveness_wait(&request, 1, links->limit)) {
        log_print(links->log, LOG_WARNING, "a rank does not come to the links; they are left out");
        links->executor = NULL;
    }
    return links->executor && !links->any_leaving;
}

/* ---- MPI ---- */

/* Runs an operation `repeat` times. Returns the time of the fastest run on its slowest member, s:
 * other work on the hosts lengthens most runs. */
static double operate(const struct link *link, MPI_Comm comm, float *sent, int count, int repeat)
{
    float *received = sent + count;
    int place, members;
    MPI_Comm_rank(comm, &place);
    MPI_Comm_size(comm, &members);
    const int next = (place + 1) % members, before = (place + members - 1) % members;
    MPI_Barrier(comm); /* all begin together */
    double times[REPEAT], start = clock_monotonic();
    for (int i = 0; i < repeat; ++i) {
        if (link->operation == LINK_ALL_REDUCE)
            MPI_Allreduce(sent, received, count, MPI_FLOAT, MPI_SUM, comm);
        else if (link->operation == LINK_ALL_GATHER)
            MPI_Allgather(sent, count / members, MPI_FLOAT, received, count / members, MPI_FLOAT,
                          comm);
        else
            MPI_Sendrecv(sent, count, MPI_FLOAT, next, 0, received, count, MPI_FLOAT, before, 0,
                         comm, MPI_STATUS_IGNORE);
        const double end = clock_monotonic();
        times[i] = end - start;
        start = end;
    }
    MPI_Allreduce(MPI_IN_PLACE, times, repeat, MPI_DOUBLE, MPI_MAX, comm);
    stats_sort(times, (size_t)repeat);
    return times[0];
}

/* Measures one operation of all members at all sizes, the smallest one first. A run that takes
 * longer than slow_run is the only sample of its size, and larger sizes get an infinite time. */
static enum status operate_sizes(struct links *links, struct link *link, MPI_Comm comm,
                                 struct error *error)
{
    const double length = 20e-3, slow_run = 0.3; /* s */
    double about = 0, seconds[LINK_SAMPLES];
    for (int i = LINK_SIZES; i-- > 0;) {
        const size_t bytes = link_size(link, i);
        if (bytes == 0)
            continue;
        const int count = (int)(bytes / sizeof(float));
        float *sent = memory_require(comm, calloc(2, bytes), "the links");
        about = about > slow_run ? INFINITY
                                 : fmin(operate(link, comm, sent, count, 1), /* connects */
                                        operate(link, comm, sent, count, 1));
        const int repeat = (int)fmin(ceil(length / about), REPEAT);
        for (int j = 0; j < LINK_SAMPLES; ++j)
            seconds[j] = about > slow_run ? about : operate(link, comm, sent, count, repeat);
        free(sent);
        TRY(link_list_measured(&links->found, link, bytes, seconds, error));
    }
    return STATUS_OK;
}

static enum status measure_mpi(struct links *links, MPI_Comm comm, int rounds, struct error *error)
{
    const struct guard_settings bound = {links->all, links->log, LIMIT, 1, "links"};
    enum status status = STATUS_OK;
    struct link link;
    int own;
    fields_clear(link_fields, &link);
    MPI_Comm_rank(comm, &own);
    for (int i = 0; i < rounds + LINK_OPERATIONS - LINK_ALL_REDUCE; ++i) {
        const bool pair = i < rounds;
        const int peer = pair ? links->peers[i] : -1, first = peer < own ? peer : own;
        struct guard *guard = guard_begin(&bound);
        MPI_Comm group;
        MPI_Comm_split(comm, !pair ? 0 : peer < 0 ? MPI_UNDEFINED : first, own, &group);
        if (group != MPI_COMM_NULL) {
            int members;
            MPI_Comm_size(group, &members);
            link.operation = pair ? LINK_SEND_RECEIVE : LINK_ALL_REDUCE + i - rounds;
            link.to_rank = pair ? peer : FIELD_MISSING;
            link.devices = members;
            status = status ? status : operate_sizes(links, &link, group, error);
            MPI_Comm_free(&group);
        }
        guard_end(guard);
    }
    return status;
}

/* ---- NCCL ---- */

static enum status measure_nccl(struct links *links, MPI_Comm comm, int rounds, struct error *error)
{
    struct request request = request_default(REQUEST_LINKS);
    struct worker_process *process = NULL;
    struct reply reply;
    size_t used = 0;
    const int limit = LIMIT + 2 * links->rounds;
    const char *uuid = executor_device(links->executor)->uuid;
    snprintf(request.link.devices, sizeof request.link.devices, "%s", uuid);
    MPI_Comm_rank(comm, &request.link.place);
    MPI_Comm_size(comm, &request.link.members);
    for (int i = 0; i < rounds; ++i)
        used += (size_t)snprintf(request.link.peers + used, sizeof request.link.peers - used,
                                 "%s%d", used ? "," : "", links->peers[i]);
    /* Every rank loads NCCL and makes an id first, so that no rank waits for one that cannot. */
    enum status status =
        executor_call_links(links->executor, &process, &request, limit, &reply, error);
    status = meet(links, comm) ? liveness_agree(comm, status, error) : STATUS_INTERRUPTED;
    if (status == STATUS_OK) {
        MPI_Bcast(reply.id, sizeof reply.id, MPI_CHAR, 0, comm);
        memcpy(request.link.id, reply.id, sizeof reply.id);
        reply_clear(&reply);
        status = executor_call_links(links->executor, &process, &request, limit, &reply, error);
        links->found = reply.links;
        reply.links = (struct link_list){NULL, 0};
        status = meet(links, comm) ? liveness_agree(comm, status, error) : STATUS_INTERRUPTED;
    }
    reply_clear(&reply);
    worker_process_destroy(process);
    return status;
}

/* ---- groups ---- */

/* Copies between the node's devices, in a process that sees them all. */
static void measure_copies(struct links *links, MPI_Comm node)
{
    const struct device *device = executor_device(links->executor);
    enum { UUID = sizeof device->uuid };
    struct request request = request_default(REQUEST_LINKS);
    struct worker_process *process = NULL;
    struct reply reply;
    struct error error;
    int place, members;
    size_t used = 0;
    MPI_Comm_rank(node, &place);
    MPI_Comm_size(node, &members);
    char *uuids = memory_require(node, calloc((size_t)members, UUID), "the links of a node");
    MPI_Gather(device->uuid, UUID, MPI_CHAR, uuids, UUID, MPI_CHAR, 0, node);
    for (int i = 0; i < members && used < sizeof request.link.devices; ++i)
        used += (size_t)snprintf(request.link.devices + used, sizeof request.link.devices - used,
                                 "%s%s", used ? "," : "", uuids + (size_t)i * UUID);
    free(uuids);
    if (place != 0)
        return;
    if (executor_call_links(links->executor, &process, &request, LIMIT, &reply, &error))
        log_print(links->log, LOG_WARNING, "%s: no copies between devices: %s", device->hostname,
                  error.text);
    *executor_links(links->executor) = reply.links; /* the first links of this rank */
    reply.links = (struct link_list){NULL, 0};
    reply_clear(&reply);
    worker_process_destroy(process);
}

/* Passes the links that this group has measured, with the greatest times of the node, to the
 * executor of the node's first rank. `rounds` as in measure_group. */
static enum status add_found(struct links *links, MPI_Comm node, int rounds, struct error *error)
{
    double times[2][SLOTS] = {{0}};
    int place, rank, left_out = 0;
    MPI_Comm_rank(node, &place);
    MPI_Comm_rank(links->all, &rank);
    /* Links of pairs precede links of all members. Ranks of a node have the same pairs, or none. */
    const size_t count = links->found.count, first = SLOTS - count;
    for (size_t i = 0; i < count; ++i)
        times[0][first + i] = links->found.links[i].time;
    MPI_Reduce(times[0], times[1], SLOTS, MPI_DOUBLE, MPI_MAX, 0, node);
    for (size_t i = 0; i < count && place == 0; ++i) {
        struct link *link = &links->found.links[i];
        const bool pair = link->to_rank != FIELD_MISSING;
        link->bandwidth *= link->time / times[1][first + i];
        link->time = times[1][first + i];
        link->nodes = pair ? 2 : rounds ? links->nodes : 1;
        link->devices = pair ? 2 * links->least : link->devices;
        if (!(pair ? link->to_rank > rank : rounds == 0 || rank == 0))
            continue;
        if (isinf(link->time))
            ++left_out;
        else
            TRY(link_list_add(executor_links(links->executor), link, error));
    }
    if (left_out > 0)
        log_print(links->log, LOG_WARNING,
                  "%s: the network is slow: %d links of larger sizes are left out",
                  executor_device(links->executor)->hostname, left_out);
    return STATUS_OK;
}

/* rounds: number of rounds in which pairs of nodes exchange, before the operations of all ranks;
 * 0: `comm` is one node. */
static void measure_group(struct links *links, MPI_Comm comm, MPI_Comm node, int rounds)
{
    struct error error = {"a rank leaves"};
    int rank;
    MPI_Comm_rank(comm, &rank);
    enum status status = (links->by_nccl ? measure_nccl : measure_mpi)(links, comm, rounds, &error);
    if (status == STATUS_OK)
        status = add_found(links, node, rounds, &error);
    if (status && rank == 0 && links->executor)
        log_print(links->log, LOG_WARNING, "%s: no links %s: %s",
                  executor_device(links->executor)->hostname,
                  rounds ? "between nodes" : "of all devices of the node", error.text);
    link_list_clear(&links->found);
}

/* Numbers the nodes and finds this rank's peers: ranks of the same place in other nodes. Ranks
 * whose place is missing in some node have no peers. */
static void find_peers(struct links *links, MPI_Comm node)
{
    int rank, ranks, members, own[2] = {0}; /* number of the node, place in the node */
    MPI_Comm_rank(links->all, &rank);
    MPI_Comm_size(links->all, &ranks);
    MPI_Comm_rank(node, &own[1]);
    MPI_Comm_size(node, &members);
    const int leads = own[1] == 0;
    MPI_Exscan(&leads, own, 1, MPI_INT, MPI_SUM, links->all); /* leaves rank 0 as it is */
    MPI_Bcast(own, 1, MPI_INT, 0, node);
    MPI_Allreduce(&leads, &links->nodes, 1, MPI_INT, MPI_SUM, links->all);
    MPI_Allreduce(&members, &links->least, 1, MPI_INT, MPI_MIN, links->all);
    int(*all)[2] = memory_require(links->all, calloc((size_t)ranks, sizeof own), "the links");
    MPI_Allgather(own, 2, MPI_INT, all, 2, MPI_INT, links->all);
    links->rounds = links_rounds(links->nodes);
    memset(links->peers, -1, sizeof links->peers);
    for (int i = 0; i < ranks && own[1] < links->least; ++i) {
        const bool meets = all[i][1] == own[1] && i != rank;
        const int round = meets ? links_round(own[0], all[i][0], links->nodes) : LINK_ROUNDS;
        if (round < links->rounds)
            links->peers[round] = i;
    }
    free(all);
}

/* False: the ranks have several kinds of devices, or one has none. */
static bool is_uniform(const struct links *links, MPI_Comm comm)
{
    const int kind = device_is_open(executor_device(links->executor))
                         ? (int)(executor_kind(links->executor) - device_kinds)
                         : DEVICE_KINDS;
    int own[2] = {kind, -kind}, most[2];
    MPI_Allreduce(own, most, 2, MPI_INT, MPI_MAX, comm);
    return most[0] == -most[1] && most[0] < DEVICE_KINDS;
}

static void measure_all(struct links *links, MPI_Comm node)
{
    const struct guard_settings bound = {links->all, links->log, LIMIT, 1, "finding nodes"};
    int members;
    struct guard *guard = guard_begin(&bound);
    MPI_Comm_size(node, &members);
    find_peers(links, node);
    const bool within = is_uniform(links, node) && members > 1;
    const bool between = is_uniform(links, links->all) && links->nodes > 1;
    guard_end(guard);
    if (within || between)
        log_print(links->log, LOG_INFO, "measuring links %s",
                  between ? "of all nodes" : "of the node");
    if (within && links->by_nccl)
        measure_copies(links, node);
    if (meet(links, node) && within)
        measure_group(links, node, node, 0);
    if (links->executor && meet(links, links->all) && between)
        measure_group(links, links->all, node, links->rounds);
}

bool links_measure(MPI_Comm all, MPI_Comm node, struct executor *executor,
                   const struct wait_limit *limit, bool leaving, const struct log *log)
{
    struct links *links = memory_require(all, calloc(1, sizeof *links), "the links");
    *links = (struct links){executor, limit,   log,
                            all,      leaving, .by_nccl = executor_kind(executor)->accelerator};
    if (meet(links, all))
        measure_all(links, node);
    if (!links->executor)
        return false;
    free(links);
    return true;
}
