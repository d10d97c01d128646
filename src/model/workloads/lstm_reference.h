/* What is compared of lstm: unlike other results, an element cannot be had without all before it, so
 * whole samples of the batch are computed (lstm_network.h). */
#ifndef ROOFSWEEP_WORKLOADS_LSTM_REFERENCE_H
#define ROOFSWEEP_WORKLOADS_LSTM_REFERENCE_H

#include "model/reference.h"

/* Compares y (forward), or dx and dw (backward), of as many samples as the request affords. */
enum status lstm_reference(const struct reference_request *request, struct expectation *expectation,
                           struct error *error);

#endif
