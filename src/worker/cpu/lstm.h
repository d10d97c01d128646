/* An LSTM on the CPU: products of CBLAS, and the gates. */
#ifndef ROOFSWEEP_CPU_LSTM_H
#define ROOFSWEEP_CPU_LSTM_H

#include "worker/cpu/routine.h"

extern const struct routine lstm_cblas;

#endif
