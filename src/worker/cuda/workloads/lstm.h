/* An LSTM by cuDNN, prepared for the open GPU. */
#ifndef ROOFSWEEP_CUDA_LSTM_H
#define ROOFSWEEP_CUDA_LSTM_H

#include "worker/gpu/work.h"

work_preparation lstm_prepare;

#endif
