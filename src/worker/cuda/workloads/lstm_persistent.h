/* lstm by a kernel of our own: one launch for all steps of a layer. */
#ifndef ROOFSWEEP_CUDA_LSTM_PERSISTENT_H
#define ROOFSWEEP_CUDA_LSTM_PERSISTENT_H

#include "worker/gpu/work.h"

work_preparation lstm_persistent_prepare;

#endif
