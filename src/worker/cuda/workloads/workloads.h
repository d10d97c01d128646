/* The workloads that run on CUDA devices: each line has the implementations of one, each prepared for the
 * open GPU by a function of its own. The table of ../device.c gives them their names. */
#ifndef ROOFSWEEP_CUDA_WORKLOADS_H
#define ROOFSWEEP_CUDA_WORKLOADS_H

#include "worker/gpu/work.h"

work_preparation attention_cudnn_prepare, attention_plain_prepare;
work_preparation conv2d_cudnn_prepare, conv2d_tiled_prepare, conv2d_plain_prepare;
work_preparation elementwise_cudnn_prepare, elementwise_plain_prepare;
work_preparation linear_cublaslt_prepare, linear_plain_prepare;
work_preparation loop_prepare; /* of compute-loop and shared-loop */
work_preparation lstm_cudnn_prepare, lstm_persistent_prepare;
work_preparation matmul_cublaslt_prepare, matmul_tiled_prepare, matmul_plain_prepare;
work_preparation norm_cudnn_prepare, norm_plain_prepare;
work_preparation pool_cudnn_prepare, pool_plain_prepare;
work_preparation softmax_cudnn_prepare, softmax_plain_prepare;

/* Whether `auto` takes the library: its fused kernels are of fp16 and bf16. */
bool attention_cudnn_takes(const struct config *config);

#endif
