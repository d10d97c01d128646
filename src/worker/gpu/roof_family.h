/* A family of roofs: variants of some kinds of roof, and what all families share.
 *
 * A kind of roof (roof_kind.h) belongs to the family whose table (of kernels, formats, directions
 * or launches) has rows for it. A variant is a row with a launch shape or a size. roofs.c tries all
 * variants, proves the fastest one by the counters, and measures it on request. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/gpu/vendor.h"

/* A variant of a roof, ready to run. Plain data. */
struct variant {
    const void *row; /* row of the family's table */
    int code;        /* index of the row's kernel, if the row has several */
    size_t bytes;    /* size of each array */
    int blocks, threads;
    int64_t iterations; /* number of iterations in one run */
    bool elastic;       /* roofs.c chooses the number of iterations */
    double work;        /* work of one iteration: bytes, FLOPs, loads of a chain, or launches */
    double access;      /* bytes of a load of a chain */
    char text[160];     /* description for people */
};

struct roofs;

struct roof_family {
    /* Returns the n-th row for this kind of roof on this device; NULL after the last. */
    const void *(*row)(struct roofs *roofs, int kind, int n);
    int choices; /* number of variants of each row */
    /* Describes a variant, with a first guess of elastic iterations, and allocates its memory. */
    enum status (*prepare)(struct roofs *roofs, int kind, const void *row, int choice,
                           struct variant *variant, struct error *error);
    /* Enqueues one run. NULL if there is `time`. */
    enum status (*run)(struct roofs *roofs, const struct variant *variant, struct error *error);
    /* Times one sample. NULL: a sample is one run between two events. */
    enum status (*time)(struct roofs *roofs, const struct variant *variant, double *seconds,
                        struct error *error);
    /* For the read roof of a cache: sets *bytes to the largest set that is read at nearly the best
     * rate. Other kinds leave *bytes NaN. NULL: the family has no such roof. */
    enum status (*reach)(struct roofs *roofs, int kind, double *bytes, struct error *error);
    /* Frees everything that the family owns; may be called again. NULL: nothing. */
    void (*close)(struct roofs *roofs);
    bool counted; /* whether counters can prove the work; they do not see copy engines */
};

/* A buffer of random numbers in device memory. It grows on demand. */
struct roofs_buffer {
    void *data;
    size_t bytes;
};

enum { CHAINS = 4 }; /* roofs_chase.c: device memory, L2, L1, shared memory */

/* The fastest variant of a kind. */
struct winner {
    const struct roof_family *family; /* NULL: the device has no such roof */
    struct variant variant;
    double rate;         /* work per second in the trials; 0: every variant failed */
    double clock;        /* s-1, clock of the last burst; 0: no burst yet */
    enum status refusal; /* status of the first variant, if every variant failed */
    struct error reason;
    double flops_ratio, bytes_ratio[LEVEL_COUNT]; /* as in struct roof */
};

/* Owns everything but the GPU. Pointers are NULL until a family needs them. */
struct roofs {
    struct gpu *gpu;
    struct winner winners[ROOF_KINDS];
    double rests_until; /* s since the epoch; before, the last load still lowers the clock */
    double busy_until;  /* s since the epoch, end of the last samples */
    /* The variant that ran last, whose code is loaded. */
    const void *warm_row;
    int warm_code;
    struct roofs_buffer operands; /* kernels only read them */
    struct roofs_buffer results;
    void *arrays[3]; /* roofs_memory.c: array_bytes each */
    size_t array_bytes;
    struct library *library;   /* roofs_library.c */
    void *host;                /* roofs_transfer.c: pinned memory */
    struct launches *launches; /* roofs_launch.c */
    struct roofs_buffer chains[CHAINS];
};

/* The vendor's folder defines these. */
extern const struct roof_family roofs_memory, roofs_onchip, roofs_vector, roofs_tensor;
extern const struct roof_family roofs_library, roofs_transfer, roofs_launch, roofs_chase;

double run_work(const struct variant *variant);
/* Runs once and waits. *seconds: time of the run. */
enum status run_time(struct roofs *roofs, const struct winner *winner, double *seconds,
                     struct error *error);

/* Grows the buffer to at least `bytes`. */
enum status roofs_reserve(struct roofs *roofs, struct roofs_buffer *buffer, size_t bytes,
                          struct error *error);
