/* How many blocks of a kernel a GPU holds at a time. */
#pragma once

#include <cuda_occupancy.h>

#include "worker/cuda/profiling/tracer.h"

/* Reads the limits of a device. `attribute` returns an attribute by its number, which is the same
 * in CUDA's driver and runtime. */
cudaOccDeviceProp residency_limits(int device, int (*attribute)(int device, int number));

/* Returns the number of blocks of a kernel that are resident on the device at a time. NVIDIA's
 * formula limits the blocks of a multiprocessor by threads, registers, shared memory and block
 * slots. It assumes that the driver gives all possible shared memory. CUPTI's sharedMemoryExecuted
 * can be less (32 KB), but counted occupancies agree with the formula. For clusters, which are
 * placed as a whole, CUPTI reports how many fit. FIELD_MISSING: the toolkit does not know the chip,
 * or CUPTI reports no number. *limit: the limiting resources, as bits (kernel_limit_name). */
int64_t residency_blocks(const struct traced_kernel *traced, const cudaOccDeviceProp *limits,
                         int64_t *limit);
