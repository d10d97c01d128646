/* Softmax, prepared for the open GPU: by cuDNN, and by kernels of our own. */
#ifndef ROOFSWEEP_CUDA_SOFTMAX_H
#define ROOFSWEEP_CUDA_SOFTMAX_H

#include "worker/gpu/work.h"

work_preparation softmax_cudnn_prepare, softmax_plain_prepare;

#endif
