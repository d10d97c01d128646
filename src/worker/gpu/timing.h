/* The time that work takes on the device. */
#ifndef ROOFSWEEP_TIMING_H
#define ROOFSWEEP_TIMING_H

#include <stdbool.h>

#include "worker/gpu/work.h"

/* As device_ops.time, but for the profiler's ratio. */
enum status timing_run(struct gpu *gpu, struct work *work, bool cold, int samples, double *seconds,
                       struct record *record, struct error *error);

/* Times of one iteration for a comparison of what can be bound: in samples of so many iterations that
 * the timer hardly counts. work->pace must be of what is bound now, or all zero. */
enum status timing_compare(struct gpu *gpu, struct work *work, bool cold, int samples,
                           double *seconds, struct error *error);

#endif
