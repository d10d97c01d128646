#include "worker/cuda/gpu/cuda_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

/* A sticky error has destroyed the context: after it has been read away, every call still reports
 * it. */
static bool context_is_lost(void)
{
    cudaGetLastError();
    cudaError_t code = cudaDeviceSynchronize();
    cudaGetLastError();
    return code != cudaSuccess;
}

static int call_length(const char *call)
{
    return (int)strcspn(call, "(");
}

enum status cuda_check(cudaError_t code, const char *call, struct error *error)
{
    if (code == cudaSuccess)
        return STATUS_OK;
    enum status status = context_is_lost()                   ? STATUS_DEVICE
                         : code == cudaErrorMemoryAllocation ? STATUS_UNSUPPORTED
                                                             : STATUS_FAILED;
    return error_set(error, status, "%.*s: %s (%s)", call_length(call), call,
                     cudaGetErrorString(code), cudaGetErrorName(code));
}

enum status cudnn_check(cudnnStatus_t code, const char *call, struct error *error)
{
    if (code == CUDNN_STATUS_SUCCESS)
        return STATUS_OK;
    char detail[400] = "";
    cudnnGetLastErrorString(detail, sizeof detail);
    detail[strcspn(detail, "\n")] = '\0';
    bool refused = CUDNN_STATUS_CATEGORY(code) == CUDNN_STATUS_NOT_SUPPORTED ||
                   code == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    enum status status = context_is_lost() ? STATUS_DEVICE
                         : refused         ? STATUS_UNSUPPORTED
                                           : STATUS_FAILED;
    return error_set(error, status, "%.*s: %s%s%s", call_length(call), call,
                     cudnnGetErrorString(code), *detail ? ": " : "", detail);
}

/* What the library does not offer, or not on this chip, is no failure. */
enum status cublas_check(cublasStatus_t code, const char *call, struct error *error)
{
    if (code == CUBLAS_STATUS_SUCCESS)
        return STATUS_OK;
    bool refused = code == CUBLAS_STATUS_NOT_SUPPORTED || code == CUBLAS_STATUS_ARCH_MISMATCH ||
                   code == CUBLAS_STATUS_ALLOC_FAILED;
    enum status status = context_is_lost() ? STATUS_DEVICE
                         : refused         ? STATUS_UNSUPPORTED
                                           : STATUS_FAILED;
    return error_set(error, status, "%.*s: %s", call_length(call), call,
                     cublasLtGetStatusString(code));
}

static enum status memory_refuse(double bytes, const char *what, size_t available,
                                 struct error *error)
{
    char need[UNITS_TEXT], have[UNITS_TEXT];
    units_format(bytes, "B", need);
    units_format((double)available, "B", have);
    return error_set(error, STATUS_UNSUPPORTED, "needs %s of device memory for %s, %s are free",
                     need, what, have);
}

enum status memory_check(double bytes, const char *what, struct error *error)
{
    size_t available, total;
    TRY(CUDA(cudaMemGetInfo(&available, &total)));
    return bytes > (double)available ? memory_refuse(bytes, what, available, error) : STATUS_OK;
}

enum status memory_allocate(double bytes, const char *what, void **memory, struct error *error)
{
    TRY(memory_check(bytes, what, error));
    void *result = NULL;
    enum status status = bytes > 0.0 ? CUDA(cudaMalloc(&result, (size_t)bytes)) : STATUS_OK;
    if (status == STATUS_UNSUPPORTED) {
        size_t available, total;
        TRY(CUDA(cudaMemGetInfo(&available, &total)));
        return memory_refuse(bytes, what, available, error);
    }
    if (status == STATUS_OK)
        *memory = result;
    return status;
}
