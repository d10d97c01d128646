/* Pools, prepared for the open GPU: by cuDNN, and by a kernel of our own. */
#ifndef ROOFSWEEP_CUDA_POOL_H
#define ROOFSWEEP_CUDA_POOL_H

#include "worker/gpu/work.h"

work_preparation pool_cudnn_prepare, pool_plain_prepare;

/* Where the kernel of our own is faster than cuDNN: in nhwc. */
bool pool_plain_takes(const struct config *config);

#endif
