/* Attention, fused by cuDNN or in three steps, prepared for the open GPU. */
#ifndef ROOFSWEEP_CUDA_ATTENTION_H
#define ROOFSWEEP_CUDA_ATTENTION_H

#include "worker/gpu/work.h"

work_preparation attention_cudnn_prepare, attention_plain_prepare;

/* cuDNN's fused kernels are of this precision; another one is done in three steps. */
bool attention_cudnn_takes(const struct config *config);

#endif
