/* A forward conv2d as a matrix product on tensor units, by kernels of our own: implementation = tiled.
 * NHWC, fp16 and bf16. */
#ifndef ROOFSWEEP_CUDA_CONV2D_TILED_H
#define ROOFSWEEP_CUDA_CONV2D_TILED_H

#include "kernels/kernels.h"
#include "model/workloads/conv2d.h"
#include "worker/cuda/gpu/work.h"

work_preparation conv2d_tiled_prepare;

/* STATUS_UNSUPPORTED with the reason where the kernels do not take it. */
enum status conv2d_tiled_check(const struct conv2d *shape, struct error *error);

/* Of the rows that such a device runs: the largest tile that wastes no column of 64 filters and still
 * gives each multiprocessor one; else the smallest. NULL: the device runs none. */
const struct conv2d_tile *conv2d_tiled_choose(const struct conv2d_tile *rows,
                                              const struct conv2d *shape, int capability,
                                              int multiprocessors);

#endif
