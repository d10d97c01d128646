/* A family of roofs: the variants to do some kinds of roof, and what all families share.
 *
 * A kind of roof (roof_kind.h) belongs to the family that has rows for it in its table of kernels,
 * formats, directions or launches. A variant is a row and a choice of launch shape or size. roofs.c
 * tries all variants, keeps the fastest, has it proven, and measures it as often as asked. A new
 * kind is a row of a family's table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/roof.h"
#include "worker/gpu/vendor.h"

/* A variant to do a roof, ready to run. Plain data. */
struct variant {
    const void *row; /* of the family's table */
    int code;        /* of some rows: which of its codes */
    size_t bytes;    /* of each array */
    int blocks, threads;
    int64_t iterations; /* of one run */
    bool elastic;       /* they may be set to whatever takes a few milliseconds */
    double work;        /* of one iteration: bytes, FLOPs, or how many things take the time */
    char text[160];     /* for people */
};

struct roofs;

struct roof_family {
    /* The n-th row that does this kind of roof on this device; NULL after the last. */
    const void *(*row)(struct roofs *roofs, int kind, int n);
    int choices; /* of each row, from 0 on */
    /* Describes a variant, with a first guess of elastic iterations, and sees to all that it
     * needs. */
    enum status (*prepare)(struct roofs *roofs, int kind, const void *row, int choice,
                           struct variant *variant, struct error *error);
    /* Enqueues one run. NULL with `time`. */
    enum status (*run)(struct roofs *roofs, const struct variant *variant, struct error *error);
    /* Times one sample by itself. NULL: one run, between two events. */
    enum status (*time)(struct roofs *roofs, const struct variant *variant, double *seconds,
                        struct error *error);
    /* Of a cache's read roof: the largest set that is read at nearly the same rate, byte; NaN of
     * all others. NULL: the family has none. */
    enum status (*reach)(struct roofs *roofs, int kind, double *bytes, struct error *error);
    /* Frees what is the family's; may be called again. NULL: there is nothing. */
    void (*close)(struct roofs *roofs);
    bool counted; /* counters see its work, and so can prove it; they do not see copy engines */
};
/* Device memory that grows with what needs it; full of random numbers. */
struct roofs_buffer {
    void *data;
    size_t bytes;
};

/* The variant that won. */
struct winner {
    const struct roof_family *family; /* NULL: this device has no such roof */
    struct variant variant;
    double rate;         /* work per second when it was tried; 0: none could be done */
    double clock;        /* s-1, of its last burst; 0: there was none */
    enum status refusal; /* not STATUS_OK: there is none */
    struct error reason;
    double flops_ratio, bytes_ratio[LEVEL_COUNT]; /* as of struct roof */
};

/* What the families share. It owns all in it but the GPU; what a family needs is NULL until it
 * does. */
struct roofs {
    struct gpu *gpu;
    struct winner winners[ROOF_KINDS];
    /* s since the epoch: until then a device that was under load rests before what depends on its
     * clock. */
    double rests_until;
    double busy_until; /* s since the epoch: when the last samples were taken */
    /* Row and code of the variant that was tried last: it is loaded. */
    const void *warm_row;
    int warm_code;
    struct roofs_buffer operands; /* never written to */
    struct roofs_buffer results;
    void *arrays[3]; /* roofs_memory.c: array_bytes each */
    size_t array_bytes;
    struct library *library;   /* roofs_library.c */
    struct transfer *transfer; /* roofs_transfer.c */
    int devices;               /* the same: that the process sees; 0: not yet asked */
    struct launches *launches; /* roofs_launch.c */
};

/* The vendor's folder defines these. */
extern const struct roof_family roofs_memory, roofs_onchip, roofs_vector, roofs_tensor;
extern const struct roof_family roofs_library, roofs_transfer, roofs_launch;

/* Of one run: bytes, FLOPs, or how many things take the time. */
double run_work(const struct variant *variant);
/* A run of any family, waited for. seconds: its own time. */
enum status run_time(struct roofs *roofs, const struct winner *winner, double *seconds,
                     struct error *error);

enum status roofs_reserve(struct roofs *roofs, struct roofs_buffer *buffer, size_t bytes,
                          struct error *error);
