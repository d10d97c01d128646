/* Softmax on the CPU by oneDNN. */
#ifndef ROOFSWEEP_CPU_SOFTMAX_ONEDNN_H
#define ROOFSWEEP_CPU_SOFTMAX_ONEDNN_H

#include "worker/cpu/routine.h"

extern const struct routine softmax_onednn;

#endif
