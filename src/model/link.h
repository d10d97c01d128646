/* A link roof: rate at which devices of a node exchange data of one size. */
#pragma once

#include "model/field.h"

/* Send-receive: each device sends to the next, and the last to the first, at the same time. */
enum link_operation {
    LINK_COPY,
    LINK_ALL_REDUCE,
    LINK_ALL_GATHER,
    LINK_SEND_RECEIVE,
    LINK_OPERATIONS
};
extern const char *const link_operation_name[]; /* by enum link_operation, NULL-terminated */
enum { LINK_DEVICES = 8 };                      /* limit for a node */

struct link {
    int64_t operation;     /* enum link_operation */
    char from[48], to[48]; /* UUIDs of a copy's devices; "" for other operations */
    int64_t devices;       /* number of devices that take part */
    int64_t peer_access;   /* copy: 1 direct, 0 through the host */
    int64_t nccl;          /* version, 22803 is 2.28.3; copy: missing */
    double bytes;          /* size of a copy, or of the result on each device */
    double time, spread;   /* s, median of the samples; (slowest - fastest) / median */
    double bandwidth;      /* byte s-1, bus bandwidth */
};
extern const struct field link_fields[];

/* Sets time, spread and bandwidth from at least one sample and the other members. */
enum status link_set_samples(struct link *link, const double *seconds, size_t samples,
                             struct error *error);
