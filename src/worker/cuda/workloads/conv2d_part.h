/* One convolution by cuDNN, in one layout: a workload, or a part of a step. */
#ifndef ROOFSWEEP_CONV2D_PART_H
#define ROOFSWEEP_CONV2D_PART_H

#include <stdbool.h>

#include "worker/gpu/work.h"
#include "worker/cuda/workloads/conv2d_calls.h"

/* As a work_preparation. The configuration names a layout, and has no bias and no activation. `lent`:
 * the caller's memory, which holds the inputs and must outlive the work; NULL: in memory of its own. */
enum status conv2d_part_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                const struct conv2d_memory *lent, struct work **work,
                                struct record *record, struct error *error);

/* Whether its algorithm is an earlier choice, which the record offered. */
bool conv2d_part_recalled(const struct work *work);

#endif
