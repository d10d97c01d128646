#include "results/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N(member, type, units, ...) FIELD(struct node_summary, member, type, units, __VA_ARGS__)
#define SUM(member, type, units, of)                                                               \
    N(member, type, units, "sum over the devices: best measured " of,                              \
      .comment = "roofs together; alone on a node with one device", .origin = FIELD_DERIVED)
const struct field node_fields[] = {
    N(hostname, FIELD_TEXT, "1", "host", ALWAYS),
    N(devices, FIELD_INTEGER, "1", "devices that ranks opened", ALWAYS),
    SUM(bandwidth, FIELD_LEVELS, "byte s-1", "bandwidth"),
    SUM(vector, FIELD_PRECISIONS, "s-1", "FLOP/s of the vector units"),
    SUM(tensor, FIELD_PRECISIONS, "s-1", "FLOP/s of the tensor units"),
    N(copy_bandwidth, FIELD_DOUBLE, "byte s-1", "bandwidth of the slowest copy between devices",
      .comment = "of copies of the largest size", .origin = FIELD_DERIVED),
    N(all_reduce_bandwidth, FIELD_DOUBLE, "byte s-1", "bus bandwidth of all-reduce in the node",
      .comment = "of the best size", .origin = FIELD_DERIVED),
    {0},
};

/* Returns the highest roof of a level, or of a precision and unit, under a condition; NaN: none. */
static double best_of(const struct device *device, enum roof_condition condition,
                      enum roof_measure measure, int of, enum unit unit)
{
    double best = NAN;
    for (int64_t i = 0; i < device->roof_count; ++i) {
        const struct roof *roof = &device->roofs[i];
        const struct roof_kind *kind = roof_kind_of(roof);
        if (kind && kind->measure == measure && roof->condition == (int64_t)condition &&
            roof_usable(roof) &&
            (measure == ROOF_COMPUTE ? (int)kind->precision == of && kind->unit == unit
                                     : (int)kind->level == of))
            best = fmax(best, roof_value(roof));
    }
    return best;
}

static void add_device(struct node_summary *node, const struct device *device,
                       const struct link_list *links)
{
    const enum roof_condition condition = node->devices > 1 ? ROOF_TOGETHER : ROOF_ALONE;
    for (int i = 0; i < LEVEL_COUNT; ++i)
        node->bandwidth[i] += best_of(device, condition, ROOF_BANDWIDTH, i, UNIT_VECTOR);
    for (int i = 0; i < PRECISION_COUNT; ++i) {
        node->vector[i] += best_of(device, condition, ROOF_COMPUTE, i, UNIT_VECTOR);
        node->tensor[i] += best_of(device, condition, ROOF_COMPUTE, i, UNIT_TENSOR);
    }
    double bytes = 0;
    for (size_t i = 0; i < links->count; ++i) {
        const struct link *link = &links->links[i];
        if (link->operation == LINK_COPY && link->bytes >= bytes) {
            node->copy_bandwidth =
                link->bytes > bytes ? link->bandwidth : fmin(node->copy_bandwidth, link->bandwidth);
            bytes = link->bytes;
        }
        if (link->operation == LINK_ALL_REDUCE &&
            (link->nodes == 1 || link->nodes == FIELD_MISSING))
            node->all_reduce_bandwidth = fmax(node->all_reduce_bandwidth, link->bandwidth);
    }
}

struct node_summary *nodes_find(const struct results *results, int64_t *node_of, size_t *count)
{
    const struct device *devices = results->devices;
    struct node_summary *nodes = calloc(results->device_count + 1, sizeof *nodes);
    json_t *known = json_object(); /* {session and host: index of the node} */
    *count = 0;
    for (size_t i = 0; nodes && i < results->device_count; ++i) {
        char key[sizeof devices->key + sizeof devices->hostname];
        const char *end = strrchr(devices[i].key, '/'); /* behind it stands the rank */
        snprintf(key, sizeof key, "%.*s/%s",
                 (int)(end ? end - devices[i].key : (ptrdiff_t)sizeof devices->key), devices[i].key,
                 devices[i].hostname);
        const json_t *found = json_object_get(known, key);
        node_of[i] = found ? (int64_t)json_integer_value(found) : (int64_t)*count;
        struct node_summary *node = &nodes[node_of[i]];
        if (!found) {
            json_object_set_new(known, key, json_integer((json_int_t)(*count)++));
            *node = (struct node_summary){.copy_bandwidth = NAN, .all_reduce_bandwidth = NAN};
            snprintf(node->hostname, sizeof node->hostname, "%s", devices[i].hostname);
        }
        ++node->devices;
    }
    json_decref(known);
    for (size_t i = 0; nodes && i < results->device_count; ++i)
        add_device(&nodes[node_of[i]], &devices[i], results_links(results, &devices[i]));
    return nodes;
}

int64_t nodes_of_end(const struct results *results, const int64_t *node_of, size_t device,
                     const struct link *link)
{
    char key[sizeof results->devices->key];
    const char *own = results->devices[device].key, *end = strrchr(own, '/');
    if (link->to_rank == FIELD_MISSING || !end)
        return *link->to ? node_of[device] : -1;
    snprintf(key, sizeof key, "%.*s/%lld", (int)(end - own), own, (long long)link->to_rank);
    const int64_t other = results_device(results, key);
    return other < 0 ? -1 : node_of[other];
}
