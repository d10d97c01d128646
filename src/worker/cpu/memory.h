/* Memory for tensors and working sets, and elements of tensors in each precision. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/workload.h"

/* Returns the bytes that can be allocated before the kernel kills a process of the system or of
 * this control group (a Slurm job, a container). */
double memory_available(void);

/* Returns zeroed memory aligned to 2 MiB, with large pages if the system has them; NULL: no memory.
 * Pages are untouched: each goes to the NUMA node of the thread that touches it first. */
void *memory_create(size_t bytes);
void memory_destroy(void *memory, size_t bytes); /* takes NULL */

/* Truncates the value to the precision; NaN stays NaN. */
void element_store(enum precision precision, void *data, int64_t index, double value);
double element_load(enum precision precision, const void *data, int64_t index);
