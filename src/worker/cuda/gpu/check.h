/* Failures of the CUDA runtime as the project's error convention (base/status.h).
 *
 * Every call into CUDA goes through a check, which puts the call's name into the error. */
#ifndef ROOFSWEEP_CHECK_H
#define ROOFSWEEP_CHECK_H

#include <stdbool.h>
#include <cuda_runtime_api.h>

#include "base/status.h"
#include "worker/cuda/gpu/gpu.h" /* whoever calls CUDA has an open GPU */

/* `call` is the text of the call; only what stands before its parenthesis is printed.
 * Memory exhausted: STATUS_UNSUPPORTED. An error that stays after it has been cleared is
 * sticky, and the context is lost: STATUS_DEVICE. Anything else: STATUS_FAILED. */
enum status cuda_check(cudaError_t code, const char *call, struct error *error);

/* Whether the context is lost; clears an error that is not sticky. Waits for the device. */
bool cuda_is_lost(void);

/* For functions that return enum status and have a `struct error *error`. */
#define CUDA(call) cuda_check((call), #call, error)

/* How much of the text of a call is its name. */
int cuda_call_length(const char *call);

#endif
