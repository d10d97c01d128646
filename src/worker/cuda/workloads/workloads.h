/* The implementations of workloads on CUDA devices, and the headers that all of them need. */
#pragma once

#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/tensor_work.h"

/* ROW(workload, implementation, work_preparation, takes). "auto" is the first row of the workload
 * that takes the configuration; takes NULL: all. So "auto" is the library, which comes first. The
 * only exception is attention in fp32 and fp64: no library fuses it, so it has three steps,
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

/* Returns whether cuDNN's fused attention has the precision: fp16 or bf16. */
bool attention_cudnn_takes(const struct config *config);
