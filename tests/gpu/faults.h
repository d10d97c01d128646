/* Stands before each of the CUDA worker's sources that test_faults.c is built of: a call that goes
 * through the macros can fail without being made. */
#pragma once

#include "worker/cuda/gpu/gpu.h"

extern struct fault {
    long at, calls; /* the call that fails, from 1, 0: none; calls so far */
    /* As what it fails. A lost device fails all calls after it, too. */
    cudaError_t cuda;
    cudnnStatus_t cudnn;
    cublasStatus_t cublas;
    bool lost;
} fault;

/* Counts a call; whether it is to fail. */
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
