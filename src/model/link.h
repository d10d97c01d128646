/* A link roof: how fast devices of a node exchange data of one size. */
#pragma once

#include "model/field.h"

/* Send-receive: each to the next device, the last to the first, all at once. */
enum link_operation {
    LINK_COPY,
    LINK_ALL_REDUCE,
    LINK_ALL_GATHER,
    LINK_SEND_RECEIVE,
    LINK_OPERATIONS
};
extern const char *const link_operation_name[]; /* by enum link_operation, NULL-terminated */
enum { LINK_DEVICES = 8 };                      /* most of a node */

struct link {
    int64_t operation;     /* enum link_operation */
    char from[48], to[48]; /* UUIDs of a copy's devices; empty of all others */
    int64_t devices;       /* that take part */
    int64_t peer_access;   /* of a copy; 0: through the host */
    int64_t nccl;          /* version, 22803 is 2.28.3; missing of a copy */
    double bytes;          /* of a copy, or of the result that each device has */
    double time, spread;   /* s, median of the samples; (slowest - fastest) / median */
    double bandwidth;      /* byte s-1, of the bus */
};
extern const struct field link_fields[];

/* Sets time, spread and bandwidth, from all else. At least one sample. */
enum status link_set_samples(struct link *link, const double *seconds, size_t samples,
                             struct error *error);
