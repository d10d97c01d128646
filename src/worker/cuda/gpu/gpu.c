#include "worker/cuda/gpu/gpu.h"

#include <stdio.h>
#include <string.h>

enum status capability_check(const struct gpu *gpu, int least, const char *what,
                             struct error *error)
{
    if (gpu->capability >= least)
        return STATUS_OK;
    return error_set(error, STATUS_UNSUPPORTED,
                     "%s needs compute capability %d.%d; this GPU has %d.%d", what, least / 10,
                     least % 10, gpu->capability / 10, gpu->capability % 10);
}

int gpu_address(int index)
{
    int domain = 0, bus = 0, device = 0;
    bool known = cudaDeviceGetAttribute(&domain, cudaDevAttrPciDomainId, index) == cudaSuccess &&
                 cudaDeviceGetAttribute(&bus, cudaDevAttrPciBusId, index) == cudaSuccess &&
                 cudaDeviceGetAttribute(&device, cudaDevAttrPciDeviceId, index) == cudaSuccess;
    return known ? domain << 16 | bus << 8 | device : 0;
}

void gpu_uuid(const char *raw, char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)raw;
    int at = snprintf(text, size, "GPU-");
    for (int i = 0; i < 16; ++i)
        at += snprintf(text + at, size - (size_t)at,
                       i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
}

static enum status library_status(bool unsupported)
{
    return cuda_is_lost() ? STATUS_DEVICE : unsupported ? STATUS_UNSUPPORTED : STATUS_FAILED;
}

enum status cudnn_check(cudnnStatus_t code, const char *call, struct error *error)
{
    if (code == CUDNN_STATUS_SUCCESS)
        return STATUS_OK;
    char detail[400] = "";
    cudnnGetLastErrorString(detail, sizeof detail);
    detail[strcspn(detail, "\n")] = '\0';
    bool unsupported = CUDNN_STATUS_CATEGORY(code) == CUDNN_STATUS_NOT_SUPPORTED ||
                       code == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    return error_set(error, library_status(unsupported), "%.*s: %s%s%s", cuda_call_length(call),
                     call, cudnnGetErrorString(code), *detail ? ": " : "", detail);
}

enum status cublas_check(cublasStatus_t code, const char *call, struct error *error)
{
    if (code == CUBLAS_STATUS_SUCCESS)
        return STATUS_OK;
    bool unsupported = code == CUBLAS_STATUS_NOT_SUPPORTED || code == CUBLAS_STATUS_ARCH_MISMATCH ||
                       code == CUBLAS_STATUS_ALLOC_FAILED;
    return error_set(error, library_status(unsupported), "%.*s: %s", cuda_call_length(call), call,
                     cublasLtGetStatusString(code));
}

const char *const cudnn_math_name[] = {
    [CUDNN_DEFAULT_MATH] = "default",
    [CUDNN_TENSOR_OP_MATH] = "tensor-op",
    [CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION] = "tensor-op-allow-conversion",
    [CUDNN_FMA_MATH] = "fma",
};
