/* attention on the CPU. */
#ifndef ROOFSWEEP_CPU_ATTENTION_H
#define ROOFSWEEP_CPU_ATTENTION_H

#include "worker/cpu/routine.h"

extern const struct routine attention_cblas;

#endif
