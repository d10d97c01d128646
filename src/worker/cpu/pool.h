/* Pools on the CPU. */
#ifndef ROOFSWEEP_CPU_POOL_H
#define ROOFSWEEP_CPU_POOL_H

#include "model/workloads/pool.h"
#include "worker/cpu/routine.h"

extern const struct routine pool_plain;

/* Sets sizes, and what is read and written. */
void pool_tensors(struct work *work, const struct pool *s);

#endif
