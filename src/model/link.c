#include "model/link.h"

#include "base/stats.h"

const char *const link_operation_name[] = {"copy", "all-reduce", "all-gather", "send-receive",
                                           NULL};

#define L(member, type, units, ...) FIELD(struct link, member, type, units, __VA_ARGS__)
const struct field link_fields[] = {
    FIELD_OF_FLAGS(struct link, operation, link_operation_name, "what the devices do", ALWAYS,
                   .comment = "send-receive: each sends to the next device, all at once"),
    L(from, FIELD_TEXT, "1", "UUID of the device that a copy comes from"),
    L(to, FIELD_TEXT, "1", "UUID of the device that a copy goes to"),
    L(devices, FIELD_INTEGER, "1", "devices that take part"),
    L(nodes, FIELD_INTEGER, "1", "nodes that take part",
      .comment = "2 with link_node_to: each device exchanges with one of the other node"),
    L(to_rank, FIELD_INTEGER, "1", "a rank of the other node", JSON_ONLY),
    FIELD_OF_FLAGS(struct link, peer_access, field_no_yes, "a copy does not go through the host"),
    L(nccl, FIELD_INTEGER, "1", "version of NCCL, 22803 is 2.28.3"),
    L(bytes, FIELD_DOUBLE, "byte", "size of a copy, or of the result that each device has", ALWAYS),
    L(time, FIELD_DOUBLE, "s", "time of one of several in a row, median of the samples", ALWAYS),
    L(spread, FIELD_DOUBLE, "1", "slowest minus fastest sample, over the median", JSON_ONLY),
    L(bandwidth, FIELD_DOUBLE, "byte s-1", "bandwidth of the bus", .origin = FIELD_DERIVED,
      .comment = "bytes / time, of all-reduce times 2 (n - 1) / n, of all-gather times (n - 1) / n",
      ALWAYS),
    {0},
};

enum status link_set_samples(struct link *link, const double *seconds, size_t samples,
                             struct error *error)
{
    struct stats stats;
    TRY(stats_compute(seconds, samples, &stats, error));
    /* Traffic of the busiest link over bytes: doc/PERFORMANCE.md of nccl-tests, "Bus bandwidth". */
    const double others = ((double)link->devices - 1) / (double)link->devices;
    const double carried[LINK_OPERATIONS] = {1, 2 * others, others, 1};
    link->time = stats.median;
    link->spread = (stats.max - stats.min) / stats.median;
    link->bandwidth = carried[link->operation] * link->bytes / link->time;
    return STATUS_OK;
}
