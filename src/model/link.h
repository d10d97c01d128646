/* A link roof: the rate at which devices exchange data of one size. The devices are two of a node,
 * all of a node, all of two nodes, or all of a job. */
#pragma once

#include "model/field.h"

/* Send-receive: each device sends to the next, and the last to the first, at the same time. Between
 * two nodes: each device exchanges with the other node's device of the same number. */
enum link_operation {
    LINK_COPY,
    LINK_ALL_REDUCE,
    LINK_ALL_GATHER,
    LINK_SEND_RECEIVE,
    LINK_OPERATIONS
};
extern const char *const link_operation_name[]; /* by enum link_operation, NULL-terminated */

enum {
    LINK_DEVICES = 8, /* largest number of devices of a node between which data is copied */
    LINK_ROUNDS = 63, /* largest number of partners of a node */
    LINK_SIZES = 6,   /* largest number of sizes of an operation */
    LINK_PAIR = 3,    /* number of sizes between two devices or two nodes */
    LINK_SAMPLES = 5,
    LINK_ID = 257 /* id of NCCL's communicator, in hexadecimal */
};

/* A request for links. Without `members`: copies between `devices`. With `members`, without `id`: a
 * new id. With `id`: exchanges with each peer, then operations of all members. */
struct link_order {
    char devices[4096]; /* UUIDs, separated by commas; "": all that the process sees */
    int members, place; /* size of NCCL's communicator, and number of this process in it */
    char id[LINK_ID];
    char peers[8 * LINK_ROUNDS + 1]; /* `place` of the peer in each round, "3,-1,1"; -1: none */
};

struct link {
    int64_t operation;     /* enum link_operation */
    char from[48], to[48]; /* UUIDs of a copy's devices; "" for other operations */
    int64_t devices;       /* number of devices that take part */
    int64_t nodes;         /* number of nodes that take part; missing: 1 */
    int64_t to_rank;       /* a rank of the second of two nodes; else missing */
    int64_t peer_access;   /* copy: 1 direct, 0 through the host */
    int64_t nccl;          /* version, 22803 is 2.28.3; missing: a copy, or MPI */
    double bytes;          /* size of a copy, or of the result on each device */
    double time;           /* s, median of the samples */
    double bandwidth;      /* byte s-1, bus bandwidth */
};
extern const struct field link_fields[];

/* byte: size number `i` of the operation, a multiple of 16 for each device; 0: there are no more.
 * The largest size comes first, to wake the devices up. Set operation, devices, to_rank and nccl
 * before. */
size_t link_size(const struct link *link, int i);

struct link_list {
    struct link *links; /* owned: link_list_clear */
    size_t count;
};
/* STATUS_SYSTEM: no memory. */
enum status link_list_add(struct link_list *list, const struct link *link, struct error *error);
/* Sorts the samples, sets bytes, time and bandwidth, and adds the link. */
enum status link_list_measured(struct link_list *list, struct link *link, size_t bytes,
                               double seconds[LINK_SAMPLES], struct error *error);
void link_list_clear(struct link_list *list);
/* Adds the member "links" to a JSON object, if there are any. */
void link_list_encode(const struct link_list *list, json_t *object);
/* Adds the links of an object, and checks them (fields_check). After a failure *list is empty. */
enum status link_list_decode(struct json_text object, struct link_list *list, struct error *error);
