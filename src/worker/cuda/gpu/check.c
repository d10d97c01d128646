#include "worker/cuda/gpu/check.h"

#include <string.h>

/* A sticky error means that the context is lost: cudaGetLastError does not clear the error. */
bool cuda_is_lost(void)
{
    cudaGetLastError();
    cudaError_t code = cudaDeviceSynchronize();
    cudaGetLastError();
    return code != cudaSuccess;
}

int cuda_call_length(const char *call)
{
    return (int)strcspn(call, "(");
}

enum status cuda_check(cudaError_t code, const char *call, struct error *error)
{
    if (code == cudaSuccess)
        return STATUS_OK;
    enum status status = cuda_is_lost()                      ? STATUS_DEVICE
                         : code == cudaErrorMemoryAllocation ? STATUS_UNSUPPORTED
                                                             : STATUS_FAILED;
    return error_set(error, status, "%.*s: %s (%s)", cuda_call_length(call), call,
                     cudaGetErrorString(code), cudaGetErrorName(code));
}

void *cuda_driver_function(const char *symbol, unsigned introduced)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found;
    cudaError_t code =
        cudaGetDriverEntryPointByVersion(symbol, &function, introduced, cudaEnableDefault, &found);
    return code == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : NULL;
}
