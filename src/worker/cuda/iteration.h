/* One iteration of a row's work, as the profiler runs it. The cache is before it as when it is timed:
 * flushed, or with what an iteration leaves there. */
#ifndef ROOFSWEEP_ITERATION_H
#define ROOFSWEEP_ITERATION_H

#include <stdbool.h>

#include "worker/gpu/timing.h"
#include "worker/cuda/profiling/profiler.h"

struct iteration {
    struct gpu *gpu;
    struct work *work;
    bool cold;
    double hold_limit; /* s, that the device is held at most before it is traced */
    bool held;         /* it still was when all was enqueued */
};

/* The profiler's view of *iteration, which must outlive it: to be counted; and to be traced, with all
 * of it enqueued before the device begins. `host_time`: s, that the host takes to enqueue it. */
struct profiled_work iteration_counted(struct iteration *iteration);
struct profiled_work iteration_traced(struct iteration *iteration, double host_time);

#endif
