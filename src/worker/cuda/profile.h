/* What the profiler tells of rows, put into their records: the kernels of each, and the FLOPs and
 * bytes of each as a whole and of its kernels. */
#pragma once

#include <stdbool.h>

#include "worker/gpu/work.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/profiling/profiler.h"

/* The profiler of a worker, whose known kernels and trials run on this GPU, which must outlive it.
 * NULL without memory. */
struct profiler *profile_open(struct gpu *gpu);

/* As profiler_try. The counters of a GPU's memory know no processes: while another one computes
 * there they are refused, and tried again at the next call. */
enum status profile_try(struct profiler *profiler, struct gpu *gpu, struct outcome *outcome,
                        struct error *error);

/* As device_ops.trace. */
enum status profile_trace(struct profiler *profiler, struct gpu *gpu, struct work *work, bool cold,
                          struct record *record, struct error *error);
/* Frees what profile_trace keeps with the work. */
void profile_release(struct work *work);

/* How many blocks of a kernel a multiprocessor holds at a time: the least by its threads,
 * registers, shared memory and places for blocks, by the vendor's own formula. The formula supposes
 * all of the shared memory that the driver could give; what it gave before the launch may be less
 * (shared_room). FIELD_MISSING where the toolkit does not know the chip. *limit: which of these
 * allow no more, kernel_limit_name. */
int64_t profile_blocks(const cudaOccDeviceProp *limits, const struct traced_kernel *traced,
                       int64_t *limit);

/* As device_ops.count_hardware: all rows in one collection. Those that profile_trace has traced. */
enum status profile_count(struct profiler *profiler, struct gpu *gpu, const struct countable *rows,
                          size_t count, struct error *error);
