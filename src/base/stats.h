/* Statistics of repeated timings. Pure functions; inputs are not changed. */
#ifndef ROOFSWEEP_STATS_H
#define ROOFSWEEP_STATS_H

#include <stddef.h>

#include "base/status.h"

struct stats {
    double median, mean, min, max;
    double stdev; /* of the sample, divided by count - 1; NaN for a single value */
};

/* count >= 1. STATUS_SYSTEM without memory. */
enum status stats_compute(const double *values, size_t count, struct stats *stats,
                          struct error *error);

/* What the adaptive rule stops on: half-width of the 95 % confidence interval of the mean, over the
 * mean; count >= 1. NaN for a single value, so that `<= stop` is false. Student's t: it takes the
 * values as independent and near normal. Times in a row are neither exactly (clocks drift), so it
 * says when to stop and is no error bar. */
double stats_uncertainty(const double *values, size_t count);

#endif
