/* Attention on the CPU by oneDNN. */
#ifndef ROOFSWEEP_CPU_ATTENTION_ONEDNN_H
#define ROOFSWEEP_CPU_ATTENTION_ONEDNN_H

#include "worker/cpu/routine.h"

extern const struct routine attention_onednn;

#endif
