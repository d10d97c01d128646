/* linear on the CPU by oneDNN. */
#ifndef ROOFSWEEP_CPU_LINEAR_ONEDNN_H
#define ROOFSWEEP_CPU_LINEAR_ONEDNN_H

#include "worker/cpu/routine.h"

extern const struct routine linear_onednn;

#endif
