/* The time that work takes on the device. */
#ifndef ROOFSWEEP_TIMING_H
#define ROOFSWEEP_TIMING_H

#include <stdbool.h>

#include "worker/cuda/gpu/work.h"

/* As device_ops.time, but for the profiler's ratio. */
enum status timing_run(struct gpu *gpu, struct work *work, bool cold, int samples, double *seconds,
                       struct record *record, struct error *error);

/* Binds `work` to each candidate in turn, times those that the library takes, and leaves it bound
 * to the fastest. If it takes none, the first one's refusal is the error. */
enum status work_choose(struct gpu *gpu, struct work *work, int candidates,
                        enum status (*bind)(struct gpu *gpu, struct work *work, int candidate,
                                            struct error *error),
                        int *fastest, struct error *error);

#endif
