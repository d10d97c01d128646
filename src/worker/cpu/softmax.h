/* Softmax on the CPU. */
#ifndef ROOFSWEEP_CPU_SOFTMAX_H
#define ROOFSWEEP_CPU_SOFTMAX_H

#include "worker/cpu/routine.h"

extern const struct routine softmax_plain;

#endif
