/* Statistics of repeated timings. Pure functions; inputs are not changed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct stats {
    double median, mean, min, max;
    double stdev; /* of the sample, divided by count - 1; NaN for a single value */
    /* The 95 % confidence interval of the median: NaN for fewer than six values, which have none.
     * Two of the values themselves, by their rank (Le Boudec, Performance Evaluation of Computer
     * and Communication Systems, 2010, theorem 2.1). No distribution is supposed, but that values
     * are independent. */
    double median_low, median_high;
};

/* count >= 1. STATUS_SYSTEM without memory. */
enum status stats_compute(const double *values, size_t count, struct stats *stats,
                          struct error *error);

/* What the adaptive rule stops on: half the width of the interval, over the median. NaN without an
 * interval, so that `<= stop` is false. */
double stats_uncertainty(const struct stats *stats);

/* *two: the values come from two modes, and it matters. They fall into two parts of a tenth of them
 * at least; a tenth of their variance at most is left within the parts, and the medians of the
 * parts differ by more than 2 % of the lower one. A clock's own steps are modes as well, but none
 * that matter. Fewer than STATS_MODES_LEAST values are never two modes. count >= 1. STATUS_SYSTEM
 * without memory. */
enum { STATS_MODES_LEAST = 20 };
enum status stats_two_modes(const double *values, size_t count, bool *two, struct error *error);
