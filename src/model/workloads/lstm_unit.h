/* One unit of a recurrent cell at one step of one sample, in fp64: what it makes of its sums, and the
 * way back. struct lstm_cell (lstm.h) has the formulas. */
#ifndef ROOFSWEEP_WORKLOADS_LSTM_UNIT_H
#define ROOFSWEEP_WORKLOADS_LSTM_UNIT_H

#include "model/workloads/lstm.h"

struct lstm_unit {
    double
        sums[LSTM_SUMS]; /* after lstm_unit_forward what the gates make of them, for the way back */
    double state;        /* an LSTM's c, else h */
};

/* Takes unit->sums and the state of the step before; sets the rest. Returns h, before a projection. */
double lstm_unit_forward(enum lstm_kind kind, struct lstm_unit *unit, double before);

/* `d`: the gradient of h, by way of the outputs. *carried: that of the state, by way of the later
 * step's state; set to what the step before gets. Sets the gradients of the sums. */
void lstm_unit_backward(enum lstm_kind kind, const struct lstm_unit *unit, double before, double d,
                        double *carried, double dsums[LSTM_SUMS]);

#endif
