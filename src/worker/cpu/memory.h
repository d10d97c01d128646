/* Memory for tensors and working sets: aligned, zero, and never more than the machine can give; and
 * one element of a tensor, in any precision that a CPU's routine computes in. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/workload.h"

/* Byte that can still be allocated before the system or this process's control group (a Slurm job,
 * a container) would have to kill somebody. */
double memory_available(void);

/* Aligned to 2 MiB, with large pages where the system gives them. The pages are not touched here:
 * they come zeroed, on the NUMA node of the thread that touches them first. NULL without memory. */
void *memory_create(size_t bytes);
void memory_destroy(void *memory, size_t bytes); /* takes NULL */

/* A value that the precision does not hold is cut to one that it does; NaN stays NaN. */
void element_store(enum precision precision, void *data, int64_t index, double value);
double element_load(enum precision precision, const void *data, int64_t index);
