/* The implementations of workloads on CUDA devices, and the headers that all of them need. */
#pragma once

#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/tensor_work.h"

/* ROW(workload, implementation, routine, takes): struct implementation. "auto" is the first row of
 * the workload that takes the configuration; libraries come first. No library fuses attention in
 * fp32 and fp64, so there "auto" runs products of cuBLASLt and a plain softmax. */
#define CUDA_WORKLOADS(ROW)                                                                        \
    ROW("attention", "cudnn", attention_cudnn, attention_cudnn_takes)                              \
    ROW("attention", "plain", attention_plain, NULL)                                               \
    ROW("compute-loop", "plain", loop_plain, NULL)                                                 \
    ROW("conv2d", "cudnn", conv2d_single, conv2d_is_single)                                        \
    ROW("conv2d", "cudnn", conv2d_cudnn, NULL)                                                     \
    ROW("conv2d", "tiled", conv2d_tiled, NULL)                                                     \
    ROW("conv2d", "plain", conv2d_plain, NULL)                                                     \
    ROW("elementwise", "cudnn", elementwise_cudnn, NULL)                                           \
    ROW("elementwise", "plain", elementwise_plain, NULL)                                           \
    ROW("linear", "cublaslt", linear_cublaslt, NULL)                                               \
    ROW("lstm", "cudnn", lstm_cudnn, NULL)                                                         \
    ROW("lstm", "persistent", lstm_persistent, NULL)                                               \
    ROW("matmul", "cublaslt", matmul_cublaslt, NULL)                                               \
    ROW("matmul", "plain", matmul_plain, NULL)                                                     \
    ROW("norm", "cudnn", norm_cudnn_batch, norm_is_batch)                                          \
    ROW("norm", "cudnn", norm_cudnn_layer, NULL)                                                   \
    ROW("norm", "plain", norm_plain, NULL)                                                         \
    ROW("pool", "cudnn", pool_cudnn, NULL)                                                         \
    ROW("shared-loop", "plain", loop_plain, NULL)                                                  \
    ROW("softmax", "cudnn", softmax_cudnn, NULL)                                                   \
    ROW("softmax", "plain", softmax_plain, NULL)

#define DECLARE(workload, implementation, routine, takes)                                          \
    extern const struct tensor_routine routine;
CUDA_WORKLOADS(DECLARE)
#undef DECLARE

bool attention_cudnn_takes(const struct config *config); /* fp16 or bf16 */
bool conv2d_is_single(const struct config *config);      /* one convolution and nothing else */
bool norm_is_batch(const struct config *config);

/* See reference_request.compute. STATUS_UNSUPPORTED: too little memory. */
enum status lstm_compute(struct gpu *gpu, const struct lstm_results *results, struct error *error);
