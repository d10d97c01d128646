/* A matrix product on the CPU: by CBLAS, and as three nested loops. */
#ifndef ROOFSWEEP_CPU_MATMUL_H
#define ROOFSWEEP_CPU_MATMUL_H

#include "worker/cpu/routine.h"

extern const struct routine matmul_cblas, matmul_plain;

#endif
