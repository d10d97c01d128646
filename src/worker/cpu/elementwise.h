/* Elementwise work on the CPU. */
#ifndef ROOFSWEEP_CPU_ELEMENTWISE_H
#define ROOFSWEEP_CPU_ELEMENTWISE_H

#include "model/workloads/elementwise.h"
#include "worker/cpu/routine.h"

extern const struct routine elementwise_plain;

/* Sets sizes, and what is read and written. */
void elementwise_tensors(struct work *work, const struct elementwise *s);

#endif
