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
    N(model, FIELD_TEXT, "1", "models of the devices", ALWAYS),
    N(driver_version, FIELD_TEXT, "1", "driver versions"),
    N(library_version, FIELD_TEXT, "1", "versions of the workload library"),
    N(system, FIELD_TEXT, "1", "versions of firmware and operating system"),
    SUM(bandwidth, FIELD_LEVELS, "byte s-1", "bandwidth"),
    SUM(vector, FIELD_PRECISIONS, "s-1", "FLOP/s of the vector units"),
    SUM(tensor, FIELD_PRECISIONS, "s-1", "FLOP/s of the tensor units"),
    N(copy_bandwidth, FIELD_DOUBLE, "byte s-1", "bandwidth of the slowest copy between devices",
      .comment = "of copies of the largest size", .origin = FIELD_DERIVED),
    N(all_reduce_bandwidth, FIELD_DOUBLE, "byte s-1", "bus bandwidth of all-reduce in the node",
      .comment = "of the best size", .origin = FIELD_DERIVED),
    {0},
};

/* Adds a value to a list "H200 NVL, H200" unless the list has it or has no room for it. */
static void add_text(char *list, size_t size, const char *value)
{
    const size_t used = strlen(list), length = strlen(value);
    for (const char *at = list; *at; at += strspn(at, ", ")) {
        const char *end = strstr(at, ", ");
        const size_t item = end ? (size_t)(end - at) : strlen(at);
        if (item == length && strncmp(at, value, item) == 0)
            return;
        at += item;
    }
    if (length > 0 && used + length + 3 < size)
        snprintf(list + used, size - used, "%s%s", used ? ", " : "", value);
}

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

static void add_device(struct node_summary *node, const struct device *device)
{
    const enum roof_condition condition = node->devices > 1 ? ROOF_TOGETHER : ROOF_ALONE;
    for (int i = 0; i < LEVEL_COUNT; ++i)
        node->bandwidth[i] += best_of(device, condition, ROOF_BANDWIDTH, i, UNIT_VECTOR);
    for (int i = 0; i < PRECISION_COUNT; ++i) {
        node->vector[i] += best_of(device, condition, ROOF_COMPUTE, i, UNIT_VECTOR);
        node->tensor[i] += best_of(device, condition, ROOF_COMPUTE, i, UNIT_TENSOR);
    }
    add_text(node->model, sizeof node->model, device->model);
    add_text(node->driver_version, sizeof node->driver_version, device->driver_version);
    add_text(node->library_version, sizeof node->library_version, device->library_version);
    add_text(node->system, sizeof node->system, device->system);
    double bytes = 0;
    for (int64_t i = 0; i < device->link_count; ++i) {
        const struct link *link = &device->links[i];
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

/* A device's key is SESSION/RANK. */
static bool same_session(const struct device *a, const struct device *b)
{
    const char *end = strrchr(a->key, '/');
    const size_t length = end ? (size_t)(end - a->key) + 1 : sizeof a->key;
    return strncmp(a->key, b->key, length) == 0;
}

struct node_summary *nodes_find(const struct results *results, int64_t *node_of, size_t *count)
{
    const struct device *devices = results->devices;
    struct node_summary *nodes = calloc(results->device_count + 1, sizeof *nodes);
    *count = 0;
    for (size_t i = 0; nodes && i < results->device_count; ++i) {
        size_t other = i; /* devices are sorted by session and rank */
        while (other > 0 && same_session(&devices[other - 1], &devices[i]) &&
               (other == i || strcmp(devices[other].hostname, devices[i].hostname) != 0))
            --other;
        const bool found = other < i && strcmp(devices[other].hostname, devices[i].hostname) == 0;
        node_of[i] = found ? node_of[other] : (int64_t)*count;
        struct node_summary *node = &nodes[node_of[i]];
        if (!found)
            nodes[(*count)++] =
                (struct node_summary){.copy_bandwidth = NAN, .all_reduce_bandwidth = NAN};
        snprintf(node->hostname, sizeof node->hostname, "%s", devices[i].hostname);
        ++node->devices;
    }
    for (size_t i = 0; nodes && i < results->device_count; ++i)
        add_device(&nodes[node_of[i]], &devices[i]);
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
