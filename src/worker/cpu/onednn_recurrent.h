/* Recurrent layers as oneDNN has them described: primitive_describe's. */
#ifndef ROOFSWEEP_CPU_ONEDNN_RECURRENT_H
#define ROOFSWEEP_CPU_ONEDNN_RECURRENT_H

#include "worker/cpu/onednn_primitive.h"

/* Only the LSTM has a projection, and forward only. */
primitive_description recurrent_lstm_forward, recurrent_lstm_backward;
primitive_description recurrent_gru_forward, recurrent_gru_backward;
primitive_description recurrent_rnn_forward, recurrent_rnn_backward;

#endif
