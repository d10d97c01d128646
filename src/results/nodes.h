/* Nodes: a row for each host of each session, with sums over its devices. Pure functions. */
#pragma once

#include "results/results.h"

struct node_summary {
    char hostname[128];
    int64_t devices; /* number of devices that ranks opened */
    /* Sums of the devices' roofs, measured together; missing if a device lacks the roof. */
    double bandwidth[LEVEL_COUNT];                           /* byte s-1 */
    double vector[PRECISION_COUNT], tensor[PRECISION_COUNT]; /* s-1 */
    double copy_bandwidth;                                   /* byte s-1, slowest pair of devices */
    double all_reduce_bandwidth;                             /* byte s-1, fastest size */
};
extern const struct field node_fields[];

/* Returns the nodes, which the caller frees, and sets node_of[i] to the index of device i's node.
 * NULL: no memory. */
struct node_summary *nodes_find(const struct results *results, int64_t *node_of, size_t *count);

/* Returns the index of the node to which a device's link leads; -1: no node, or all devices. */
int64_t nodes_of_end(const struct results *results, const int64_t *node_of, size_t device,
                     const struct link *link);
