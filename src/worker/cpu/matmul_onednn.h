/* A matrix product on the CPU by oneDNN. */
#ifndef ROOFSWEEP_CPU_MATMUL_ONEDNN_H
#define ROOFSWEEP_CPU_MATMUL_ONEDNN_H

#include "worker/cpu/routine.h"

extern const struct routine matmul_onednn;

#endif
