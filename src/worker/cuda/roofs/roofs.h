/* The roofs of the open device: shared by the roofs' own units.
 *
 * A kind of roof (roof.h) belongs to one family, which knows the ways to do it: rows of a table of
 * kernels, times launch shapes or sizes. roofs.c tries them all, keeps the fastest, has it proven,
 * and measures it as often as asked. */
#ifndef ROOFSWEEP_ROOFS_H
#define ROOFSWEEP_ROOFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/cuda/gpu/cuda_internal.h"

/* One way to do a roof, ready to run. Plain data. */
struct way {
    const void *row; /* of the family's table */
    int choice;      /* the family's, within the row */
    size_t bytes;    /* of each array */
    int blocks, threads;
    int64_t iterations; /* of one run */
    bool elastic;       /* they may be set to whatever takes a few milliseconds */
    double work;        /* of one iteration: bytes, FLOPs, or how many things take the time */
    char text[160];     /* for people */
};

struct roofs;

struct roof_family {
    /* How many ways to try; 0: this device has no such roof, or it is of another family. */
    int (*candidates)(const struct roofs *roofs, int kind);
    /* Describes one of them, with a first guess of elastic iterations, and sees to all that it
     * needs. */
    enum status (*choose)(struct roofs *roofs, int kind, int candidate, struct way *way,
                          struct error *error);
    /* Enqueues one run. NULL with `time`. */
    enum status (*run)(struct roofs *roofs, const struct way *way, struct error *error);
    /* Times one sample in a way of its own. NULL: one run, between two events. */
    enum status (*time)(struct roofs *roofs, const struct way *way, double *seconds,
                        struct error *error);
    void (*close)(struct roofs *roofs); /* frees what is the family's; NULL: nothing */
};
extern const struct roof_family roofs_memory, roofs_onchip, roofs_vector, roofs_tensor,
    roofs_library, roofs_transfer, roofs_launch;

/* Device memory that grows with what needs it; full of random numbers. */
struct roofs_buffer {
    void *data;
    size_t bytes;
};

/* The way that won. */
struct winner {
    const struct roof_family *family; /* NULL: this device has no such roof */
    struct way way;
    enum status refusal; /* not STATUS_OK: there is none */
    struct error reason;
    double flops_ratio, bytes_ratio[LEVEL_COUNT]; /* as of struct roof */
};

/* Owned by struct device_state, as everything in it; what a family needs is NULL until it does. */
struct roofs {
    struct device_state *state;
    struct winner winners[ROOF_KINDS];
    const void *warm_row; /* of the way that was tried last, and its choice: its code is loaded */
    int warm_choice;
    struct roofs_buffer operands; /* never written to */
    struct roofs_buffer results;
    void *arrays[3]; /* roofs_memory.c: array_bytes each */
    size_t array_bytes;
    struct library *library;   /* roofs_library.c */
    struct transfer *transfer; /* roofs_transfer.c */
    cudaGraphExec_t graph;     /* roofs_launch.c */
};

enum status roofs_reserve(struct roofs *roofs, struct roofs_buffer *buffer, size_t bytes,
                          struct error *error);

/* Candidates are all combinations of rows of several tables: takes the number of a row of the next
 * one, which has `count`, out of *candidate. */
int candidate_take(int *candidate, int count);

#endif
