/* Nodes: the hosts of each session, each with its devices in one row. Pure functions. */
#pragma once

#include "results/results.h"

struct node_summary {
    char hostname[128];
    int64_t devices; /* number of devices that ranks opened */
    char model[256], driver_version[256], library_version[256], system[512]; /* distinct values */
    /* Sums over the devices, measured together; missing if a device lacks the value. */
    double bandwidth[LEVEL_COUNT];                           /* byte s-1 */
    double vector[PRECISION_COUNT], tensor[PRECISION_COUNT]; /* s-1 */
    double copy_bandwidth;                                   /* byte s-1, of the slowest pair */
    double all_reduce_bandwidth;                             /* byte s-1, best size */
};
extern const struct field node_fields[];

/* Sets the node of each device (an index) and returns the nodes, which the caller frees. NULL: no
 * memory. */
struct node_summary *nodes_find(const struct results *results, int64_t *node_of, size_t *count);

/* Returns the node that a link of a device leads to, or -1: none, or all devices take part. */
int64_t nodes_of_end(const struct results *results, const int64_t *node_of, size_t device,
                     const struct link *link);
