/* One convolution by cuDNN, in tensors that belong to someone else: a part of a step. */
#ifndef ROOFSWEEP_CONV2D_PART_H
#define ROOFSWEEP_CONV2D_PART_H

#include "worker/cuda/gpu/work.h"
#include "worker/cuda/workloads/conv2d_calls.h"

/* As a work_preparation. The memory is the caller's, holds the inputs, and must outlive the work. The
 * configuration names a layout, and has no bias and no activation. */
enum status conv2d_part_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                const struct conv2d_memory *memory, struct work **work,
                                struct record *record, struct error *error);

#endif
