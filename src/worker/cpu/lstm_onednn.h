/* An LSTM on the CPU by oneDNN. */
#ifndef ROOFSWEEP_CPU_LSTM_ONEDNN_H
#define ROOFSWEEP_CPU_LSTM_ONEDNN_H

#include "worker/cpu/routine.h"

extern const struct routine lstm_onednn;

#endif
