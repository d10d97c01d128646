/* Work whose tensors are plain arrays in the canonical layout: allocated, filled, given back. The
 * structs of such workloads begin with struct tensor_work, and their tables of functions have
 * tensor_work_run and tensor_work_result. */
#ifndef ROOFSWEEP_TENSOR_WORK_H
#define ROOFSWEEP_TENSOR_WORK_H

#include "worker/gpu/work.h"

struct tensor_work {
    struct work base;
    struct arena *arena;                              /* whose memory it has */
    void *input[TENSOR_COUNT], *result[TENSOR_COUNT]; /* NULL: there is none */
    size_t result_bytes[TENSOR_COUNT];
    enum precision stored[TENSOR_COUNT];
};

/* Elements of each tensor; 0: there is none. */
struct tensor_sizes {
    int64_t read[TENSOR_COUNT], written[TENSOR_COUNT];
    bool wide[TENSOR_COUNT]; /* stored as fp32, of fp64 as fp64: not in the precision of the work */
};

/* Allocates the tensors of *work, which is all zero, and fills the inputs. After a failure *work is
 * to be cleared as well. */
enum status tensor_work_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                               const struct tensor_sizes *sizes, struct tensor_work *work,
                               struct error *error);
void tensor_work_clear(struct tensor_work *work);

/* As struct work_ops says: the results are NaN, then there is one iteration. */
enum status tensor_work_run(struct gpu *gpu, struct work *work, int64_t samples,
                            struct error *error);
const void *tensor_work_result(const struct work *work, enum tensor tensor);
enum precision tensor_work_stored(const struct work *work, enum tensor tensor);

/* What a record has of a kernel of our own. */
void tensor_work_describe(const char *algorithm, struct record *record);

#endif
