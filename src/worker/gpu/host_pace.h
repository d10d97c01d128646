/* The host's pace: how long it takes to enqueue one iteration for a device that is not kept waiting.
 * An ordinary caller's iterations follow each other no faster than that. */
#ifndef ROOFSWEEP_HOST_PACE_H
#define ROOFSWEEP_HOST_PACE_H

#include "worker/gpu/work.h"

/* s, the median of some iterations, each enqueued while the device idles. What `reset` enqueues is not
 * part of it. */
enum status host_pace(struct gpu *gpu, struct work *work, double *seconds, struct error *error);

#endif
