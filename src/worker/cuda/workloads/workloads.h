/* The workloads that run on CUDA devices, how each implementation is prepared, and what all are
 * written with. */
#pragma once

#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/tensor_work.h"

/* ROW(workload, implementation, work_preparation, takes). "auto" is the first of a workload's rows
 * that takes the configuration, NULL: it takes all. That is the library, which comes first.
 * Attention in fp32 and fp64 is the one exception: no library has it fused, so it is three steps,
 * products of cuBLASLt and a plain softmax, as in frameworks. */
#define CUDA_WORKLOADS(ROW)                                                                        \
    ROW("attention", "cudnn", attention_cudnn_prepare, attention_cudnn_takes)                      \
    ROW("attention", "plain", attention_plain_prepare, NULL)                                       \
    ROW("compute-loop", "plain", loop_prepare, NULL)                                               \
    ROW("conv2d", "cudnn", conv2d_cudnn_prepare, NULL)                                             \
    ROW("conv2d", "tiled", conv2d_tiled_prepare, NULL)                                             \
    ROW("conv2d", "plain", conv2d_plain_prepare, NULL)                                             \
    ROW("elementwise", "cudnn", elementwise_cudnn_prepare, NULL)                                   \
    ROW("elementwise", "plain", elementwise_plain_prepare, NULL)                                   \
    ROW("linear", "cublaslt", linear_cublaslt_prepare, NULL)                                       \
    ROW("linear", "plain", linear_plain_prepare, NULL)                                             \
    ROW("lstm", "cudnn", lstm_cudnn_prepare, NULL)                                                 \
    ROW("lstm", "persistent", lstm_persistent_prepare, NULL)                                       \
    ROW("matmul", "cublaslt", matmul_cublaslt_prepare, NULL)                                       \
    ROW("matmul", "tiled", matmul_tiled_prepare, NULL)                                             \
    ROW("matmul", "plain", matmul_plain_prepare, NULL)                                             \
    ROW("norm", "cudnn", norm_cudnn_prepare, NULL)                                                 \
    ROW("norm", "plain", norm_plain_prepare, NULL)                                                 \
    ROW("pool", "cudnn", pool_cudnn_prepare, NULL)                                                 \
    ROW("pool", "plain", pool_plain_prepare, NULL)                                                 \
    ROW("shared-loop", "plain", loop_prepare, NULL)                                                \
    ROW("softmax", "cudnn", softmax_cudnn_prepare, NULL)                                           \
    ROW("softmax", "plain", softmax_plain_prepare, NULL)

#define DECLARE(workload, implementation, prepare, takes) work_preparation prepare;
CUDA_WORKLOADS(DECLARE)
#undef DECLARE

/* Whether its fused kernels are of this precision: fp16 and bf16. */
bool attention_cudnn_takes(const struct config *config);
