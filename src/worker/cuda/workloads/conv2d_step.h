/* Passes of several parts (struct conv2d_parts), and whatever has a bias or an activation: convolutions
 * by cuDNN, one each with an algorithm of its own, or by kernels of our own; bias, activation, their
 * gradients and the update by kernels of our own. */
#ifndef ROOFSWEEP_CUDA_CONV2D_STEP_H
#define ROOFSWEEP_CUDA_CONV2D_STEP_H

#include "model/workloads/conv2d.h"
#include "worker/gpu/work.h"

/* Whether a pass is more than one convolution. */
bool conv2d_is_step(const struct conv2d *s);

/* What is a step, its convolutions by cuDNN. */
work_preparation conv2d_step_prepare;

#endif
