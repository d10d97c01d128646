/* Pools on the CPU by oneDNN. */
#ifndef ROOFSWEEP_CPU_POOL_ONEDNN_H
#define ROOFSWEEP_CPU_POOL_ONEDNN_H

#include "worker/cpu/routine.h"

extern const struct routine pool_onednn;

#endif
