/* Work whose tensors are plain arrays in the canonical layout: allocated, filled, given back. The
 * structs of such workloads begin with struct tensor_work. */
#pragma once

#include "worker/gpu/work.h"

struct tensor_work {
    struct work base;
    const struct tensor_routine *routine;
    struct work_ops ops;                              /* from its routine */
    struct arena *arena;                              /* whose memory it has */
    void *input[TENSOR_COUNT], *result[TENSOR_COUNT]; /* NULL: there is none */
    void *intermediate; /* what its kernels leave each other; NULL: nothing */
    size_t result_bytes[TENSOR_COUNT], intermediate_bytes;
    enum precision stored[TENSOR_COUNT];
    uint64_t seed; /* of the inputs */
};

/* Elements of each tensor, and bytes of what kernels leave each other; 0: there is none. Results
 * and biases are in the type of the precision's results. */
struct tensor_sizes {
    int64_t read[TENSOR_COUNT], written[TENSOR_COUNT];
    double intermediate;
    bool wide[TENSOR_COUNT]; /* stored as fp32, of fp64 as fp64: not in the precision of the work */
    const char *const *names; /* in messages; NULL: the usual ones */
};

/* How a workload is done: one implementation. */
struct tensor_routine {
    size_t bytes; /* of its struct, which is zero at first */
    /* Of the vector units, without a workspace. NULL: `open` says what runs. */
    const char *algorithm;
    /* Sets the shape in its struct. */
    struct tensor_sizes (*describe)(const struct config *config, struct work *work);
    /* Whether it is offered, before anything is allocated. NULL: it is. */
    enum status (*check)(const struct gpu *gpu, const struct config *config, struct error *error);
    /* Prepares what there is beside the tensors. NULL: nothing. */
    enum status (*open)(struct gpu *gpu, const struct config *config, struct work *work,
                        struct record *record, struct error *error);
    enum status (*iterate)(struct gpu *gpu, struct work *work, struct error *error);
    /* Gives back what `open` took, also where that failed. NULL: nothing. */
    void (*close)(struct work *work);
};
/* As a work_preparation. */
enum status tensor_work_prepare(const struct tensor_routine *routine, struct gpu *gpu,
                                const struct config *config, uint64_t seed, struct work **work,
                                struct record *record, struct error *error);

/* Defines the work_preparation of a routine. */
#define TENSOR_WORK_PREPARE(name, routine)                                                         \
    enum status name(struct gpu *gpu, const struct config *config, uint64_t seed,                  \
                     struct work **work, struct record *record, struct error *error)               \
    {                                                                                              \
        return tensor_work_prepare(&(routine), gpu, config, seed, work, record, error);            \
    }

/* What a record has of what runs. The workspace is in byte. */
void tensor_work_describe(const char *algorithm, enum unit unit, double workspace,
                          struct record *record);
