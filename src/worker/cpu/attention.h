/* attention on the CPU. */
#ifndef ROOFSWEEP_CPU_ATTENTION_H
#define ROOFSWEEP_CPU_ATTENTION_H

#include "model/workloads/attention.h"
#include "worker/cpu/routine.h"

extern const struct routine attention_cblas;

/* Sets sizes, and what is read and written. */
void attention_tensors(struct work *work, const struct attention *s);

#endif
