/* The kernels of one row, as the profiler traces them, put into its record. */
#ifndef ROOFSWEEP_ROW_TRACE_H
#define ROOFSWEEP_ROW_TRACE_H

#include <stdbool.h>

#include "worker/gpu/work.h"
#include "worker/cuda/profiling/profiler.h"

/* As device_ops.trace. */
enum status row_trace(struct profiler *profiler, struct gpu *gpu, struct work *work, bool cold,
                      struct record *record, struct error *error);

/* Frees what row_trace keeps with the work. */
void row_release(struct work *work);

#endif
