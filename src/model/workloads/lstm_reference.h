/* The reference of lstm: unlike other results, an element cannot be had without all before it, so
 * whole samples of the batch are computed. */
#ifndef ROOFSWEEP_WORKLOADS_LSTM_REFERENCE_H
#define ROOFSWEEP_WORKLOADS_LSTM_REFERENCE_H

#include "model/reference.h"

/* Compares y (forward), or dx and dw (backward), of as many samples as the request affords. */
enum status lstm_reference(const struct reference_request *request, struct expectation *expectation,
                           struct error *error);

/* Results for the first `samples` of the batch. y, dx: [sequence][samples][width]; dw: the whole of
 * w, from these samples' output gradient alone. forward sets y; backward sets y, dx and dw. `seen`: an
 * output as y that decides which units of a relu were off, on the way back; NULL: the own one. The
 * caller owns the arrays (NULL: not wanted). STATUS_SYSTEM without memory. */
enum status lstm_reference_compute(const struct config *config, uint64_t seed, int64_t samples,
                                   reference_loop *loop, const double *seen, double *y, double *dx,
                                   double *dw, struct error *error);

#endif
