/* A matrix product, by cuBLASLt or as one would first write it, prepared for the open GPU. */
#ifndef ROOFSWEEP_CUDA_MATMUL_H
#define ROOFSWEEP_CUDA_MATMUL_H

#include "worker/cuda/gpu/work.h"

work_preparation matmul_cublaslt_prepare, matmul_plain_prepare;

#endif
