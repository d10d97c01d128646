/* Norms, prepared for the open GPU: by cuDNN, batch norms by its calls and layer norms by an operation
 * graph, and by kernels of our own. */
#ifndef ROOFSWEEP_CUDA_NORM_H
#define ROOFSWEEP_CUDA_NORM_H

#include "worker/cuda/gpu/work.h"

work_preparation norm_cudnn_prepare, norm_plain_prepare;
/* Whether kernels of our own are likely the faster ones, or the library has none: layer norms of fp64. */
bool norm_plain_takes(const struct config *config);

#endif
