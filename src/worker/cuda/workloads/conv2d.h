/* Convolutions by cuDNN: a single one, or one of the parts of a pass. */
#pragma once

#include "model/workloads/conv2d.h"
#include "worker/gpu/tensor_work.h"

/* Checks whether cuDNN runs the configuration: one convolution without bias and activation. */
enum status conv2d_single_check(const struct gpu *gpu, const struct config *config,
                                struct error *error);

struct conv2d_memory {
    void *x, *w, *y; /* on the device */
};

/* Prepares one convolution in memory of the caller, which holds the inputs and must outlive the
 * work. The configuration has passed conv2d_single_check. */
enum status conv2d_part_prepare(struct gpu *gpu, const struct config *config,
                                const struct conv2d_memory *memory, struct work **work,
                                struct record *record, struct error *error);
