/* Norms, prepared for the open GPU: by cuDNN, batch norms by its calls and layer norms by an operation
 * graph, and by kernels of our own. */
#ifndef ROOFSWEEP_CUDA_NORM_H
#define ROOFSWEEP_CUDA_NORM_H

#include "worker/gpu/work.h"

work_preparation norm_cudnn_prepare, norm_plain_prepare;

#endif
