/* Elementwise work on the CPU. */
#ifndef ROOFSWEEP_CPU_ELEMENTWISE_H
#define ROOFSWEEP_CPU_ELEMENTWISE_H

#include "worker/cpu/routine.h"

extern const struct routine elementwise_plain;

#endif
