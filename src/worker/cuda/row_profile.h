/* The profile of one row: what the profiler tells of a piece of work, put into its record. The
 * profiler's own room knows neither work nor records: here they meet. */
#ifndef ROOFSWEEP_ROW_PROFILE_H
#define ROOFSWEEP_ROW_PROFILE_H

#include <stdbool.h>

#include "worker/cuda/gpu/work.h"
#include "worker/cuda/profiling/profiler.h"

/* One whose known kernels and trials run on this GPU, which must outlive it. NULL without memory. */
struct profiler *row_profiler_open(struct gpu *gpu);

/* As profiler_try. The counters of a GPU's memory know no processes: while another one computes there
 * they are refused, and tried again at the next call. */
enum status row_profiler_try(struct profiler *profiler, struct gpu *gpu, struct outcome *outcome,
                             struct error *error);

/* As device_ops.trace. */
enum status row_trace(struct profiler *profiler, struct gpu *gpu, struct work *work, bool cold,
                      struct record *record, struct error *error);

/* As device_ops.count_hardware: all rows in one collection. */
enum status rows_count(struct profiler *profiler, struct gpu *gpu, const struct countable *rows,
                       size_t count, struct error *error);

/* Frees what row_trace keeps with the work. */
void row_release(struct work *work);

#endif
