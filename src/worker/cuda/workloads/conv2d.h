/* Convolutions by cuDNN, for conv2d itself and for its passes of several parts. */
#pragma once

#include "model/workloads/conv2d.h"
#include "worker/gpu/work.h"

/* On the device. */
struct conv2d_memory {
    void *x, *w, *y;
};

/* As a work_preparation: one convolution. The configuration names a layout, and has no bias and no
 * activation. `lent`: the caller's memory, which holds the inputs and must outlive the work; NULL:
 * in memory of its own. */
enum status conv2d_part_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                const struct conv2d_memory *lent, struct work **work,
                                struct record *record, struct error *error);

/* Whether this GPU is new enough for a convolution in this precision. */
enum status conv2d_part_check(const struct gpu *gpu, enum precision precision, struct error *error);
