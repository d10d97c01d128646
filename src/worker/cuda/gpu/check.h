/* Converts errors of CUDA calls to the project's error convention (base/status.h). */
#pragma once

#include <stdbool.h>
#include <cuda_runtime_api.h>

#include "base/status.h"

/* `call` is the source text of the call; the message has the function's name. STATUS_UNSUPPORTED:
 * out of memory. STATUS_DEVICE: the context is lost. STATUS_FAILED: any other error. */
enum status cuda_check(cudaError_t code, const char *call, struct error *error);

/* Returns whether the context is lost. Waits for the device, and clears all other errors. */
bool cuda_is_lost(void);

/* Returns the length of the function's name in the text of a call. */
int cuda_call_length(const char *call);

/* Returns a function of the CUDA driver, which the worker does not link; NULL: the driver lacks it.
 * introduced: the CUDA version that introduced the function, 1000 x major + 10 x minor. */
void *cuda_driver_function(const char *symbol, unsigned introduced);

/* For use in functions that return enum status and have a `struct error *error`. */
#define CUDA(call) cuda_check((call), #call, error)
