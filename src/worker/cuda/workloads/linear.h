/* A fully connected layer, by cuBLASLt or as one would first write it, prepared for the open GPU. */
#ifndef ROOFSWEEP_CUDA_LINEAR_H
#define ROOFSWEEP_CUDA_LINEAR_H

#include "worker/gpu/work.h"

work_preparation linear_cublaslt_prepare, linear_plain_prepare;

#endif
