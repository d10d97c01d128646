/* A forward conv2d as a matrix product on tensor units, by kernels of our own: implementation = tiled.
 * NHWC, fp16 and bf16. Of the tiles that the device runs the fastest is taken, as of a library's
 * algorithms. */
#ifndef ROOFSWEEP_CUDA_CONV2D_TILED_H
#define ROOFSWEEP_CUDA_CONV2D_TILED_H

#include "worker/gpu/work.h"

work_preparation conv2d_tiled_prepare;

#endif
