#include "ranks/node_tuning.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static const double tune_timeouts = 3; /* tuning tries many settings of all roofs */
/* After so many lost workers a device gets no more roofs. */
enum { LOSSES_MOST = 3 };

/* ---- one device ---- */

/* No roofs are a loss for what is derived from them, not a reason to measure nothing. `later`: left to another
 * tune; NULL: none. */
static enum status tune(struct node *node, const struct roof_way *ways, const bool *later)
{
    struct request request = request_default(REQUEST_TUNE);
    struct reply reply;
    struct error error;
    memset(node->tuned, 0, sizeof node->tuned);
    request.peaks = node->settings->request;
    request.prove = node->settings->prove;
    if (ways)
        memcpy(request.peaks.ways, ways, sizeof request.peaks.ways);
    if (later)
        memcpy(request.peaks.later, later, sizeof request.peaks.later);
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

/* A lost worker takes what was tuned with it: a new one tunes anew. */
static void tune_until_done(struct node *node, const struct roof_way *ways, const bool *later)
{
    while (tune(node, ways, later) == STATUS_DEVICE)
        if (!replace_worker(node))
            return;
}

void node_recover(struct node *node, int lost_over)
{
    node->found[lost_over] = false;
    memset(node->tuned, 0, sizeof node->tuned);
    if (replace_worker(node))
        tune_until_done(node, node->way, NULL);
}

/* ---- devices of one model ---- */

enum { NO_MODEL = 0 }; /* it is not tuned, or not with others */

static uint64_t model_of(const struct node *node)
{
    char text[sizeof node->device.model + sizeof node->device.library_version + 32];
    const bool shares = device_kinds[node->device_kind].shares_ways && !node->settings->skip;
    snprintf(text, sizeof text, "%d %s %s", node->device_kind, node->device.model,
             node->device.library_version);
    return shares ? XXH3_64bits(text, strlen(text)) | 1 : NO_MODEL;
}

void node_compare_models(struct node *node)
{
    MPI_Allgather(&(uint64_t){model_of(node)}, 1, MPI_UINT64_T, node->models, 1, MPI_UINT64_T,
                  node->ranks.comm);
}

/* The ranks whose devices are of this rank's model, in their order: at least this one. */
static int members_of(const struct node *node, int *members)
{
    int count = 0;
    for (int rank = 0; rank < node->ranks.count; ++rank)
        if (rank == node->ranks.rank || node->models[rank] == node->models[node->ranks.rank])
            members[count++] = rank;
    return count > 0 ? count : 1;
}

/* Whether any ranks share a search: all say the same. */
static bool any_share(const struct node *node)
{
    for (int i = 0; i < node->ranks.count; ++i)
        for (int j = 0; j < i; ++j)
            if (node->models[i] != NO_MODEL && node->models[i] == node->models[j])
                return true;
    return false;
}

/* The rank of the model that looks for the ways of a roof. Roofs that take about as long stand beside each other in
 * their table. */
static int searcher_of(const int *members, int count, int kind)
{
    return members[kind % count];
}

/* Each looks for its part; then each has the ways of all. Where a search failed there is none, and all look. */
static bool search_together(struct node *node, struct roof_way ways[ROOF_KINDS])
{
    const int size = ROOF_KINDS * (int)sizeof *node->way, own = node->ranks.rank;
    const uint64_t model = node->models[own];
    int *members = node->members, count = members_of(node, members);
    bool later[ROOF_KINDS];
    MPI_Request request;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        later[kind] = model != NO_MODEL && searcher_of(members, count, kind) != own;
    if (model != NO_MODEL && count > 1)
        tune_until_done(node, NULL, later);
    MPI_Iallgather(node->way, size, MPI_BYTE, node->ways, size, MPI_BYTE, node->ranks.comm,
                   &request);
    if (!gathering_await(&node->ranks, request))
        return false;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        ways[kind] =
            node->ways[(size_t)searcher_of(members, count, kind) * ROOF_KINDS + (size_t)kind];
    return true;
}

void node_tune(struct node *node)
{
    struct roof_way ways[ROOF_KINDS] = {{0}};
    if (any_share(node) && !search_together(node, ways))
        return;
    if (!node->settings->skip)
        tune_until_done(node, ways, NULL);
}
