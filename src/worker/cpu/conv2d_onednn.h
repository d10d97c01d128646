/* conv2d on the CPU by oneDNN. */
#ifndef ROOFSWEEP_CPU_CONV2D_ONEDNN_H
#define ROOFSWEEP_CPU_CONV2D_ONEDNN_H

#include "worker/cpu/routine.h"

extern const struct routine conv2d_onednn;

#endif
