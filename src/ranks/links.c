#include "ranks/links.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ranks/liveness.h"

enum {
    LIMIT = 60,     /* s; limit of a collective call right after all ranks have met, and of NCCL */
    PAIR_SIZES = 3, /* links of a pair of nodes; workers measure as many */
    SAMPLES = 5
};

/* A rank among those of a communicator. On the heap, as struct node of node_roofs.c. */
struct links {
    struct executor *executor;
    const struct wait_limit *limit;
    const struct log *log;
    MPI_Comm all;
    int leaving, any_leaving; /* arguments of meet */
    bool by_nccl;
    int nodes, own; /* number of nodes; number of this node */
    /* By round: rank that this one exchanges with (-1: none), node, number of devices. */
    int rounds, peers[LINK_ROUNDS], partners[LINK_ROUNDS], devices[LINK_ROUNDS];
    struct device found; /* has the links of the last group */
};

int links_rounds(int nodes)
{
    const int rounds = nodes - 1 + nodes % 2;
    return nodes < 2 ? 0 : rounds < LINK_ROUNDS ? rounds : LINK_ROUNDS;
}

/* The circle method: the last place of an even number stands still, all others turn by one. */
int links_partner(int node, int nodes, int round)
{
    const int last = nodes - 1 + nodes % 2; /* number of those that turn, odd */
    const int still = (int)((int64_t)round * ((last + 1) / 2) % last);
    int partner = (round - node % last + last) % last;
    if (node == last)
        partner = still;
    else if (node == still)
        partner = last;
    return partner < nodes ? partner : node;
}

/* Waits for all ranks. False: one is leaving, or does not come. */
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

static void operate(const struct link *link, MPI_Comm comm, int to, int from, int members,
                    float *sent, float *received, int count)
{
    if (link->operation == LINK_ALL_REDUCE)
        MPI_Allreduce(sent, received, count, MPI_FLOAT, MPI_SUM, comm);
    else if (link->operation == LINK_ALL_GATHER)
        MPI_Allgather(sent, count / members, MPI_FLOAT, received, count / members, MPI_FLOAT, comm);
    else
        MPI_Sendrecv(sent, count, MPI_FLOAT, to, 0, received, count, MPI_FLOAT, from, 0, comm,
                     MPI_STATUS_IGNORE);
}

/* Returns the greatest time of all members, or of the peer and this rank. */
static double greatest(MPI_Comm comm, int peer, double seconds)
{
    double other = seconds;
    if (peer >= 0)
        MPI_Sendrecv(&seconds, 1, MPI_DOUBLE, peer, 0, &other, 1, MPI_DOUBLE, peer, 0, comm,
                     MPI_STATUS_IGNORE);
    else
        MPI_Allreduce(&seconds, &other, 1, MPI_DOUBLE, MPI_MAX, comm);
    return fmax(seconds, other);
}

/* Measures one operation at all sizes. peer: -1: all members take part. */
static void operate_sizes(struct links *links, struct link *link, MPI_Comm comm, int peer)
{
    static const int sizes[] = {1 << 22, 1 << 18, 1 << 14, 4}; /* numbers of floats */
    const double length = 10e-3, repeat_most = 100;            /* s */
    int place, members;
    struct error unused;
    MPI_Comm_rank(comm, &place);
    MPI_Comm_size(comm, &members);
    const int to = peer < 0 ? (place + 1) % members : peer;
    const int from = peer < 0 ? (place + members - 1) % members : peer;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        const int count = peer < 0 ? (sizes[i] / members + 1) * members : sizes[i];
        double seconds[SAMPLES], start = 0;
        if (peer >= 0 && i == 2)
            continue;
        void *memory = calloc((size_t)count * 2, sizeof(float));
        float *sent = memory_require(comm, memory, "the links"), *received = sent + count;
        for (int run = 0; run < 2; ++run) {
            start = clock_monotonic();
            operate(link, comm, to, from, members, sent, received, count);
        }
        const double about = greatest(comm, peer, clock_monotonic() - start);
        const int repeat = (int)fmin(ceil(length / about), repeat_most);
        for (int j = 0; j < SAMPLES; ++j) {
            greatest(comm, peer, 0);
            start = clock_monotonic();
            for (int k = 0; k < repeat; ++k)
                operate(link, comm, to, from, members, sent, received, count);
            seconds[j] = (clock_monotonic() - start) / repeat;
        }
        free(sent);
        link->bytes = (double)count * (double)sizeof *sent;
        if (link_set_samples(link, seconds, SAMPLES, &unused) == STATUS_OK)
            device_add_link(&links->found, link);
    }
}

static enum status measure_mpi(struct links *links, MPI_Comm comm, bool pairs)
{
    const struct guard_settings bound = {links->all, links->log, LIMIT + 2 * links->rounds, 1,
                                         "links"};
    struct link link;
    int members;
    fields_clear(link_fields, &link);
    link.nodes = 1;
    MPI_Comm_size(comm, &members);
    struct guard *guard = guard_begin(&bound);
    for (int i = 0; i < (pairs ? links->rounds : 0); ++i) {
        MPI_Barrier(comm);
        link.operation = LINK_SEND_RECEIVE;
        link.devices = 2;
        link.to_rank = links->peers[i];
        if (links->peers[i] >= 0)
            operate_sizes(links, &link, comm, links->peers[i]);
    }
    link.devices = members;
    link.to_rank = FIELD_MISSING;
    for (int i = LINK_ALL_REDUCE; i < LINK_OPERATIONS; ++i) {
        link.operation = i;
        operate_sizes(links, &link, comm, -1);
    }
    guard_end(guard);
    return STATUS_OK;
}

/* ---- NCCL ---- */

/* Calls a further process of this rank, which sees the named devices. */
static enum status call(struct links *links, struct worker_process **process,
                        const struct request *request, struct reply *reply, struct error *error)
{
    reply_init(reply);
    return executor_call_separate(links->executor, process, request, REPLY_DEVICE,
                                  LIMIT + 2 * links->rounds, reply, error);
}

static enum status measure_nccl(struct links *links, MPI_Comm comm, bool pairs, struct error *error)
{
    struct request request = request_default(REQUEST_LINKS);
    struct worker_process *process = NULL;
    struct reply reply;
    size_t used = 0;
    const char *uuid = executor_device(links->executor)->uuid;
    snprintf(request.link.devices, sizeof request.link.devices, "%s", uuid);
    MPI_Comm_rank(comm, &request.link.place);
    MPI_Comm_size(comm, &request.link.members);
    for (int i = 0; pairs && i < links->rounds; ++i)
        used += (size_t)snprintf(request.link.peers + used, sizeof request.link.peers - used,
                                 "%s%d", used ? "," : "", links->peers[i]);
    /* Every rank loads NCCL and makes an id, so that one that cannot keeps nobody waiting. */
    enum status status = call(links, &process, &request, &reply, error);
    status = meet(links, comm) ? liveness_agree(comm, status, error) : STATUS_INTERRUPTED;
    if (status == STATUS_OK) {
        MPI_Bcast(reply.id, sizeof reply.id, MPI_CHAR, 0, comm);
        memcpy(request.link.id, reply.id, sizeof reply.id);
        reply_clear(&reply);
        status = call(links, &process, &request, &reply, error);
        links->found = reply.device;
        status = meet(links, comm) ? liveness_agree(comm, status, error) : STATUS_INTERRUPTED;
    }
    reply_clear(&reply);
    worker_process_destroy(process);
    return status;
}

/* ---- groups ---- */

/* Copies between the node's devices, in a process that sees them all. */
static void measure_copies(struct links *links, MPI_Comm node, struct device *device)
{
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
    if (call(links, &process, &request, &reply, &error))
        log_print(links->log, LOG_WARNING, "%s: no copies between devices: %s", device->hostname,
                  error.text);
    for (int64_t i = 0; i < reply.device.link_count; ++i)
        device_add_link(device, &reply.device.links[i]);
    reply_clear(&reply);
    worker_process_destroy(process);
}

/* Adds the links of this group to the device of the node's first rank, with the greatest times of
 * the node. */
static void add_found(struct links *links, MPI_Comm node, bool pairs, struct device *device)
{
    double own[LINKS_MAX] = {0}, most[LINKS_MAX];
    int place, rank, slot[LINKS_MAX];
    int64_t found = 0;
    MPI_Comm_rank(node, &place);
    MPI_Comm_rank(links->all, &rank);
    const int rounds = pairs ? links->rounds : 0;
    for (int i = 0; i < rounds * PAIR_SIZES; ++i)
        if (links->peers[i / PAIR_SIZES] >= 0 && found < links->found.link_count)
            slot[found++] = i;
    for (int i = rounds * PAIR_SIZES; found < links->found.link_count && i < LINKS_MAX; ++i)
        slot[found++] = i;
    for (int64_t i = 0; i < found; ++i)
        own[slot[i]] = links->found.links[i].time;
    MPI_Reduce(own, most, LINKS_MAX, MPI_DOUBLE, MPI_MAX, 0, node);
    for (int64_t i = 0; place == 0 && i < found; ++i) {
        struct link *link = &links->found.links[i];
        const bool pair = slot[i] < rounds * PAIR_SIZES;
        const int partner = pair ? links->partners[slot[i] / PAIR_SIZES] : -1;
        link->bandwidth *= link->time / most[slot[i]];
        link->time = most[slot[i]];
        link->devices = pair ? links->devices[slot[i] / PAIR_SIZES] : link->devices;
        link->nodes = pair ? 2 : pairs ? links->nodes : 1;
        if (pair ? partner > links->own : !pairs || rank == 0)
            device_add_link(device, link);
    }
}

/* pairs: `comm` has several nodes, and their pairs exchange first. */
static void measure_group(struct links *links, MPI_Comm comm, MPI_Comm node, bool pairs,
                          struct device *device)
{
    struct error error = {"a rank leaves"};
    int rank;
    MPI_Comm_rank(comm, &rank);
    links->found.link_count = 0;
    enum status status =
        links->by_nccl ? measure_nccl(links, comm, pairs, &error) : measure_mpi(links, comm, pairs);
    if (status == STATUS_OK)
        add_found(links, node, pairs, device);
    else if (rank == 0 && links->executor)
        log_print(links->log, LOG_WARNING, "%s: no links %s: %s", device->hostname,
                  pairs ? "between nodes" : "of all devices of the node", error.text);
}

/* Numbers the nodes and finds this rank's peers. */
static void find_peers(struct links *links, MPI_Comm node)
{
    int rank, ranks, place, members, first, before = 0;
    MPI_Comm_rank(links->all, &rank);
    MPI_Comm_size(links->all, &ranks);
    MPI_Comm_rank(node, &place);
    MPI_Comm_size(node, &members);
    first = place == 0;
    MPI_Exscan(&first, &before, 1, MPI_INT, MPI_SUM, links->all);
    links->own = rank == 0 ? 0 : before;
    MPI_Bcast(&links->own, 1, MPI_INT, 0, node);
    void *memory = calloc((size_t)ranks * 2, sizeof(int));
    int *nodes = memory_require(links->all, memory, "the links"), *places = nodes + ranks;
    MPI_Allgather(&links->own, 1, MPI_INT, nodes, 1, MPI_INT, links->all);
    MPI_Allgather(&place, 1, MPI_INT, places, 1, MPI_INT, links->all);
    MPI_Allreduce(&links->own, &links->nodes, 1, MPI_INT, MPI_MAX, links->all);
    ++links->nodes;
    links->rounds = links_rounds(links->nodes);
    for (int round = 0; round < links->rounds; ++round) {
        const int partner = links_partner(links->own, links->nodes, round);
        int others = 0;
        links->partners[round] = partner;
        links->peers[round] = -1;
        for (int i = 0; i < ranks && partner != links->own; ++i) {
            others += nodes[i] == partner;
            if (nodes[i] == partner && places[i] == place)
                links->peers[round] = i;
        }
        links->devices[round] = 2 * (others < members ? others : members);
    }
    free(nodes);
}

/* False: the ranks have several kinds of devices, or one has none. */
static bool is_uniform(const struct links *links, MPI_Comm comm, const struct device *device)
{
    const int kind = device_is_open(device) ? (int)(executor_kind(links->executor) - device_kinds)
                                            : DEVICE_KINDS;
    int own[2] = {kind, -kind}, most[2];
    MPI_Allreduce(own, most, 2, MPI_INT, MPI_MAX, comm);
    return most[0] == -most[1] && most[0] < DEVICE_KINDS;
}

static void measure_all(struct links *links, MPI_Comm node, struct device *device)
{
    const struct guard_settings bound = {links->all, links->log, LIMIT, 1, "finding nodes"};
    int members;
    struct guard *guard = guard_begin(&bound);
    MPI_Comm_size(node, &members);
    find_peers(links, node);
    const bool within = is_uniform(links, node, device) && members > 1;
    const bool between = is_uniform(links, links->all, device) && links->nodes > 1;
    guard_end(guard);
    if (within || between)
        log_print(links->log, LOG_INFO, "measuring links %s",
                  between ? "of all nodes" : "of the node");
    if (within && links->by_nccl)
        measure_copies(links, node, device);
    if (meet(links, node) && within)
        measure_group(links, node, node, false, device);
    if (links->executor && meet(links, links->all) && between)
        measure_group(links, links->all, node, true, device);
}

bool links_measure(MPI_Comm all, MPI_Comm node, struct executor *executor,
                   const struct wait_limit *limit, bool leaving, const struct log *log,
                   struct device *device)
{
    struct links *links = memory_require(all, calloc(1, sizeof *links), "the links");
    links->executor = executor;
    links->limit = limit;
    links->log = log;
    links->all = all;
    links->leaving = leaving;
    links->by_nccl = executor_kind(executor)->accelerator;
    if (meet(links, all))
        measure_all(links, node, device);
    if (!links->executor)
        return false;
    free(links);
    return true;
}
