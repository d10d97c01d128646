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

static void add_device(struct node_summary *node, const struct device *device,
                       const struct link_list *links)
{
    const int64_t condition = node->devices > 1 ? ROOF_TOGETHER : ROOF_ALONE;
    struct node_summary best;
    fields_clear(node_fields, &best);
    for (int64_t i = 0; i < device->roof_count; ++i) {
        const struct roof *roof = &device->roofs[i];
        const struct roof_kind *kind = roof_kind_of(roof);
        double *value = NULL;
        if (kind && kind->measure == ROOF_COMPUTE)
            value = &(kind->unit == UNIT_TENSOR ? best.tensor : best.vector)[kind->precision];
        else if (kind && kind->measure == ROOF_BANDWIDTH && kind->level < LEVEL_COUNT)
            value = &best.bandwidth[kind->level];
        if (value && roof->condition == condition && roof_usable(roof))
            *value = fmax(*value, roof_value(roof));
    }
    for (int i = 0; i < LEVEL_COUNT; ++i)
        node->bandwidth[i] += best.bandwidth[i];
    for (int i = 0; i < PRECISION_COUNT; ++i) {
        node->vector[i] += best.vector[i];
        node->tensor[i] += best.tensor[i];
    }
    for (size_t i = 0; i < links->count; ++i) {
        const struct link *link = &links->links[i];
        if (link->operation == LINK_COPY &&
            link->bytes == links->links->bytes) /* copy of the largest size */
            node->copy_bandwidth = fmin(node->copy_bandwidth, link->bandwidth);
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
        const char *end = strrchr(devices[i].key, '/'); /* the rank follows the slash */
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
