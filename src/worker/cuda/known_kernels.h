/* Kernels whose times stay the same as long as nothing disturbs them. If these times change, so do the
 * times of whatever else is measured. */
#ifndef ROOFSWEEP_KNOWN_KERNELS_H
#define ROOFSWEEP_KNOWN_KERNELS_H

#include "worker/cuda/gpu/gpu.h"

enum { KNOWN_KERNELS = 2 };

/* s: times[0] of one kernel of about a millisecond, times[1] from one of many queued empty kernels to
 * the next; medians. */
enum status known_kernels_time(struct gpu *gpu, double times[KNOWN_KERNELS], struct error *error);

#endif
