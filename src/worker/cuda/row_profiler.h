/* The profiler of a worker: known kernels and trials for it on the open GPU, and whether it may count
 * there now. */
#ifndef ROOFSWEEP_ROW_PROFILER_H
#define ROOFSWEEP_ROW_PROFILER_H

#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/profiling/profiler.h"

/* One whose known kernels and trials run on this GPU, which must outlive it. NULL without memory. */
struct profiler *row_profiler_open(struct gpu *gpu);

/* As profiler_try. The counters of a GPU's memory know no processes: while another one computes there
 * they are refused, and tried again at the next call. */
enum status row_profiler_try(struct profiler *profiler, struct gpu *gpu, struct outcome *outcome,
                             struct error *error);

#endif
