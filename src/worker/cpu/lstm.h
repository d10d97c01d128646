/* An LSTM on the CPU: as products of CBLAS and the gates. */
#ifndef ROOFSWEEP_CPU_LSTM_H
#define ROOFSWEEP_CPU_LSTM_H

#include "model/workloads/lstm.h"
#include "worker/cpu/routine.h"

extern const struct routine lstm_cblas;

/* Sets sizes, and what is read and written. */
void lstm_tensors(struct work *work, const struct lstm *s);
void lstm_gradient_shape(const struct work *work, int64_t *sample, int64_t *batch);

#endif
