/* A matrix product, by cuBLASLt, by tiles on the tensor units, or as one would first write it, prepared for the open GPU. */
#ifndef ROOFSWEEP_CUDA_MATMUL_H
#define ROOFSWEEP_CUDA_MATMUL_H

#include "worker/gpu/work.h"

work_preparation matmul_cublaslt_prepare, matmul_tiled_prepare, matmul_plain_prepare;
bool matmul_cublaslt_takes(const struct config *config); /* not sparse ones */

#endif
