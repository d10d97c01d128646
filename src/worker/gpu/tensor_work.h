/* Work whose tensors are plain arrays in the canonical layout: allocated, filled, given back. The
 * structs of such workloads begin with struct tensor_work. */
#ifndef ROOFSWEEP_TENSOR_WORK_H
#define ROOFSWEEP_TENSOR_WORK_H

#include "worker/gpu/work.h"

struct tensor_work {
    struct work base;
    const struct tensor_way *way;                     /* NULL: it is prepared without one */
    struct work_ops ops;                              /* of its way */
    struct arena *arena;                              /* whose memory it has */
    void *input[TENSOR_COUNT], *result[TENSOR_COUNT]; /* NULL: there is none */
    void *between; /* what its kernels leave each other; NULL: nothing */
    size_t result_bytes[TENSOR_COUNT], between_bytes;
    enum precision stored[TENSOR_COUNT];
};

/* Elements of each tensor, and bytes of what kernels leave each other; 0: there is none. Results and biases are in the type of the precision's
 * results. */
struct tensor_sizes {
    int64_t read[TENSOR_COUNT], written[TENSOR_COUNT];
    double between;
    bool wide[TENSOR_COUNT]; /* stored as fp32, of fp64 as fp64: not in the precision of the work */
    const char *const *names; /* in messages; NULL: the usual ones */
};

/* How a workload is done: one implementation. */
struct tensor_way {
    size_t bytes; /* of its struct, which is zero at first */
    const char
        *algorithm; /* of the vector units, without a workspace; NULL: `open` says what runs */
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
enum status tensor_work_prepare(const struct tensor_way *way, struct gpu *gpu,
                                const struct config *config, uint64_t seed, struct work **work,
                                struct record *record, struct error *error);

/* Defines the work_preparation of a way. */
#define TENSOR_WORK_PREPARE(name, way)                                                             \
    enum status name(struct gpu *gpu, const struct config *config, uint64_t seed,                  \
                     struct work **work, struct record *record, struct error *error)               \
    {                                                                                              \
        return tensor_work_prepare(&(way), gpu, config, seed, work, record, error);                \
    }

/* For work that is prepared without a way. */

/* Allocates the tensors of *work, which is all zero, and fills the inputs. After a failure *work is
 * to be cleared as well. */
enum status tensor_work_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                               const struct tensor_sizes *sizes, struct tensor_work *work,
                               struct error *error);
void tensor_work_clear(struct tensor_work *work);

/* As struct work_ops says: results and what is between are NaN, then there is one iteration. */
enum status tensor_work_run(struct gpu *gpu, struct work *work, int64_t samples,
                            struct error *error);
const void *tensor_work_result(const struct work *work, enum tensor tensor);
enum precision tensor_work_stored(const struct work *work, enum tensor tensor);

/* What a record has of work that vector units do, without a workspace. */
void tensor_work_describe(const char *algorithm, struct record *record);

#endif
