/* linear on the CPU. */
#ifndef ROOFSWEEP_CPU_LINEAR_H
#define ROOFSWEEP_CPU_LINEAR_H

#include "worker/cpu/routine.h"

extern const struct routine linear_cblas, linear_plain;

#endif
