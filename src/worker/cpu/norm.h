/* Batch and layer norms on the CPU. */
#ifndef ROOFSWEEP_CPU_NORM_H
#define ROOFSWEEP_CPU_NORM_H

#include "worker/cpu/routine.h"

extern const struct routine norm_plain;

#endif
