/* linear on the CPU. */
#ifndef ROOFSWEEP_CPU_LINEAR_H
#define ROOFSWEEP_CPU_LINEAR_H

#include "model/workloads/linear.h"
#include "worker/cpu/routine.h"

extern const struct routine linear_cblas, linear_plain;

/* Sets sizes, and what is read and written. */
void linear_tensors(struct work *work, const struct linear *s);

#endif
