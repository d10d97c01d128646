/* Softmax on the CPU. */
#ifndef ROOFSWEEP_CPU_SOFTMAX_H
#define ROOFSWEEP_CPU_SOFTMAX_H

#include "model/workloads/softmax.h"
#include "worker/cpu/routine.h"

extern const struct routine softmax_plain;

/* Sets sizes, and what is read and written. */
void softmax_tensors(struct work *work, const struct softmax *s);

#endif
