/* FLOPs and bytes of rows, as the profiler counts them, put into their records: of each row as a whole,
 * then of each of its kernels. */
#ifndef ROOFSWEEP_ROW_COUNT_H
#define ROOFSWEEP_ROW_COUNT_H

#include "worker/gpu/work.h"
#include "worker/cuda/profiling/profiler.h"

/* As device_ops.count_hardware: all rows in one collection. Those that row_trace has traced. */
enum status rows_count(struct profiler *profiler, struct gpu *gpu, const struct countable *rows,
                       size_t count, struct error *error);

#endif
