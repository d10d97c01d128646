/* Pools on the CPU. */
#ifndef ROOFSWEEP_CPU_POOL_H
#define ROOFSWEEP_CPU_POOL_H

#include "worker/cpu/routine.h"

extern const struct routine pool_plain;

#endif
