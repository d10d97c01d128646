/* Puts kernels, FLOPs and bytes from the profiler into the records of rows. */
#pragma once

#include <stdbool.h>

#include "worker/gpu/work.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/profiling/profiler.h"

/* `gpu` runs known kernels and trials, and must outlive the profiler. NULL: no memory. */
struct profiler *profile_open(struct gpu *gpu);

/* As profiler_try. Refuses while another process computes on the GPU, because memory counters would
 * count that process's work, too; the next call tries again. */
enum status profile_try(struct profiler *profiler, struct gpu *gpu, struct outcome *outcome,
                        struct error *error);

/* As device_ops.trace. */
enum status profile_trace(struct profiler *profiler, struct gpu *gpu, struct work *work, bool cold,
                          struct record *record, struct error *error);
/* Frees the memory that profile_trace has stored in the work. */
void profile_release(struct work *work);

/* As device_ops.count_hardware, for rows that profile_trace has traced. */
enum status profile_count(struct profiler *profiler, struct gpu *gpu, const struct countable *rows,
                          size_t count, struct error *error);
