/* Elementwise work, prepared for the open GPU: by cuDNN, and by a kernel of our own. */
#ifndef ROOFSWEEP_CUDA_ELEMENTWISE_H
#define ROOFSWEEP_CUDA_ELEMENTWISE_H

#include "worker/gpu/work.h"

work_preparation elementwise_cudnn_prepare, elementwise_plain_prepare;

#endif
