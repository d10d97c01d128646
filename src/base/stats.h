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
 * mean; count >= 1. NaN for a single value, so that `<= stop` is false. It follows
 * Student's t, which supposes independent, normal values. Times in a row are not quite that, because
 * clocks drift. So the figure says when to stop; it is no error bar. */
double stats_uncertainty(const double *values, size_t count);

#endif
