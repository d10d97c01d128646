/* Work whose tensors are plain arrays in the canonical layout, which this file allocates, fills and
 * frees. The structs of such workloads begin with struct tensor_work. */
#pragma once

#include "worker/gpu/work.h"

struct tensor_work {
    struct work base;
    const struct tensor_routine *routine;
    struct work_ops ops;
    struct arena *arena;                              /* owns the arrays */
    void *input[TENSOR_COUNT], *result[TENSOR_COUNT]; /* NULL: the pass lacks it */
    void *intermediate; /* data that one kernel leaves to the next; NULL: none */
    size_t result_bytes[TENSOR_COUNT], intermediate_bytes;
    enum precision stored[TENSOR_COUNT];
    uint64_t seed; /* of the inputs */
};

/* One implementation of a workload. */
struct tensor_routine {
    size_t bytes;          /* size of the implementation's struct, which is zero at first */
    const char *algorithm; /* without a workspace; NULL: `open` describes the algorithm */
    enum unit unit;
    /* Sets shape and intermediate_bytes. May change *tensors, the workload's tensors. */
    void (*shape)(const struct config *config, struct work *work, struct tensors *tensors);
    /* Refuses configurations before anything is allocated. NULL: accepts all configurations. */
    enum status (*check)(const struct gpu *gpu, const struct config *config, struct error *error);
    /* Prepares all but the tensors. NULL: nothing. */
    enum status (*open)(struct gpu *gpu, const struct config *config, struct work *work,
                        struct record *record, struct error *error);
    enum status (*iterate)(struct gpu *gpu, struct work *work, struct error *error);
    /* Frees what `open` made, even partly. NULL: nothing. */
    void (*close)(struct work *work);
};

/* Prepares one implementation of a workload. *work stays NULL on failure. */
enum status tensor_work_prepare(const struct tensor_routine *routine, struct gpu *gpu,
                                const struct config *config, uint64_t seed, struct work **work,
                                struct record *record, struct error *error);

/* Defines NAME_shape, which sets the member `shape` (struct NAME) of a struct NAME_work. */
#define TENSOR_SHAPE(name)                                                                         \
    static void name##_shape(const struct config *config, struct work *work,                       \
                             struct tensors *tensors)                                              \
    {                                                                                              \
        (void)tensors;                                                                             \
        ((struct name##_work *)work)->shape = name##_from(config);                                 \
    }

/* Describes the algorithm in the record. workspace: byte. */
void tensor_work_describe(const char *algorithm, enum unit unit, double workspace,
                          struct record *record);
