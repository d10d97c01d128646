/* What a conv2d's results must be: elements of each of them in fp64, from the definition.
 *
 * Gradients behind an activation follow from y. They are computed from the device's own y, which is
 * compared by itself: where y is close to 0, its rounding alone would decide whether a ReLU lets a
 * gradient through. So a request for such a pass must be able to read. */
#ifndef ROOFSWEEP_WORKLOADS_CONV2D_REFERENCE_H
#define ROOFSWEEP_WORKLOADS_CONV2D_REFERENCE_H

#include "model/reference.h"

enum status conv2d_reference(const struct reference_request *request,
                             struct expectation *expectation, struct error *error);

#endif
