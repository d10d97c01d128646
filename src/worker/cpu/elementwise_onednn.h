/* Elementwise work on the CPU by oneDNN. */
#ifndef ROOFSWEEP_CPU_ELEMENTWISE_ONEDNN_H
#define ROOFSWEEP_CPU_ELEMENTWISE_ONEDNN_H

#include "worker/cpu/routine.h"

extern const struct routine elementwise_onednn;

#endif
