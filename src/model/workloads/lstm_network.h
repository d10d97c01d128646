/* Recurrent layers in fp64, from the definition: all results of some samples of the batch. */
#ifndef ROOFSWEEP_WORKLOADS_LSTM_NETWORK_H
#define ROOFSWEEP_WORKLOADS_LSTM_NETWORK_H

#include "model/reference.h"

/* Results for the first `samples` of the batch. y, dx: [sequence][samples][width]; dw: the whole of
 * w, from these samples' output gradient alone. forward sets y; backward sets y, dx and dw. `seen`: an
 * output as y that decides which units of a relu were off, on the way back; NULL: the own one. The
 * caller owns the arrays (NULL: not wanted). STATUS_SYSTEM without memory. */
enum status lstm_network_compute(const struct config *config, uint64_t seed, int64_t samples,
                                 reference_loop *loop, const double *seen, double *y, double *dx,
                                 double *dw, struct error *error);

#endif
