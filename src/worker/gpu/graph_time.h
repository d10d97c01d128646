/* The time of an iteration within a CUDA graph, where kernels follow each other with smaller gaps, and
 * where streams that a library forks cost less: as frameworks run what they have compiled. */
#ifndef ROOFSWEEP_GRAPH_TIME_H
#define ROOFSWEEP_GRAPH_TIME_H

#include <stdbool.h>

#include "worker/gpu/work.h"

/* s, one of many iterations of one graph, the median of some launches. NaN for what must be prepared
 * between iterations, and for what cannot be captured: that is STATUS_OK. */
enum status graph_time_measure(struct gpu *gpu, struct work *work, bool cold, double *seconds,
                               struct error *error);

#endif
