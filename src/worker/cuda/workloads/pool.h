/* Pools, prepared for the open GPU: by cuDNN, and by a kernel of our own. */
#ifndef ROOFSWEEP_CUDA_POOL_H
#define ROOFSWEEP_CUDA_POOL_H

#include "worker/cuda/gpu/work.h"

work_preparation pool_cudnn_prepare, pool_plain_prepare;

#endif
