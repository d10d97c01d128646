/* Included before each source of the CUDA worker in test_faults. Calls within the macros CUDA,
 * CUDNN and CUBLAS can then return an error instead of being made. */
#pragma once

#include "worker/cuda/gpu/gpu.h"

extern struct fault {
    long at, calls; /* number of the failing call, from 1 (0: none); calls so far */
    /* Error codes of the failing call. If the device is lost, all later calls fail, too. */
    cudaError_t cuda;
    cudnnStatus_t cudnn;
    cublasStatus_t cublas;
    bool lost;
} fault;

/* Counts a call, and returns whether it fails. */
bool fault_is_due(void);

#define FAULT(check, code, call)                                                                   \
    (!fault_is_due() ? check((call), #call, error)                                                 \
     : fault.lost    ? error_set(error, STATUS_DEVICE, "%s: lost", #call)                          \
                     : check(code, #call, error))
#undef CUDA
#define CUDA(call) FAULT(cuda_check, fault.cuda, call)
#undef CUDNN
#define CUDNN(call) FAULT(cudnn_check, fault.cudnn, call)
#undef CUBLAS
#define CUBLAS(call) FAULT(cublas_check, fault.cublas, call)
