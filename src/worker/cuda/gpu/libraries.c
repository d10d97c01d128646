#include "worker/cuda/gpu/libraries.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum status cudnn_check(cudnnStatus_t code, const char *call, struct error *error)
{
    if (code == CUDNN_STATUS_SUCCESS)
        return STATUS_OK;
    char detail[400] = "";
    cudnnGetLastErrorString(detail, sizeof detail);
    detail[strcspn(detail, "\n")] = '\0';
    bool refused = CUDNN_STATUS_CATEGORY(code) == CUDNN_STATUS_NOT_SUPPORTED ||
                   code == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    enum status status = cuda_is_lost() ? STATUS_DEVICE
                         : refused      ? STATUS_UNSUPPORTED
                                        : STATUS_FAILED;
    return error_set(error, status, "%.*s: %s%s%s", cuda_call_length(call), call,
                     cudnnGetErrorString(code), *detail ? ": " : "", detail);
}

enum status cublas_check(cublasStatus_t code, const char *call, struct error *error)
{
    if (code == CUBLAS_STATUS_SUCCESS)
        return STATUS_OK;
    bool refused = code == CUBLAS_STATUS_NOT_SUPPORTED || code == CUBLAS_STATUS_ARCH_MISMATCH ||
                   code == CUBLAS_STATUS_ALLOC_FAILED;
    enum status status = cuda_is_lost() ? STATUS_DEVICE
                         : refused      ? STATUS_UNSUPPORTED
                                        : STATUS_FAILED;
    return error_set(error, status, "%.*s: %s", cuda_call_length(call), call,
                     cublasLtGetStatusString(code));
}

void libraries_describe(struct device *device)
{
    size_t cudnn = cudnnGetVersion(), cublas = cublasLtGetVersion();
    snprintf(device->library_version, sizeof device->library_version,
             "cuDNN %zu.%zu.%zu, cuBLASLt %zu.%zu.%zu", cudnn / 10000, cudnn % 10000 / 100,
             cudnn % 100, cublas / 10000, cublas % 10000 / 100, cublas % 100);
}

enum status libraries_open(struct gpu *gpu, struct error *error)
{
    TRY(CUDNN(cudnnCreate(&gpu->cudnn)));
    TRY(CUDNN(cudnnSetStream(gpu->cudnn, gpu->stream)));
    return CUBLAS(cublasLtCreate(&gpu->cublas));
}

void libraries_close(struct gpu *gpu)
{
    if (gpu->cudnn)
        cudnnDestroy(gpu->cudnn);
    if (gpu->cublas)
        cublasLtDestroy(gpu->cublas);
    gpu->cudnn = NULL;
    gpu->cublas = NULL;
}

const char *const cudnn_math_name[] = {
    [CUDNN_DEFAULT_MATH] = "default",
    [CUDNN_TENSOR_OP_MATH] = "tensor-op",
    [CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION] = "tensor-op-allow-conversion",
    [CUDNN_FMA_MATH] = "fma",
};
