/* Statistics of repeated timings. Pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct stats {
    double median, mean, min, max;
    double stdev; /* standard deviation of the sample; NaN for a single value */
    /* 95 % confidence interval of the median; both ends are values of the sample (Le Boudec,
     * Performance Evaluation of Computer and Communication Systems, 2010, theorem 2.1). It assumes
     * independent values, but no particular distribution. NaN for fewer than six values. */
    double median_low, median_high;
};

/* Sorts the values in place and returns their median. count >= 1. */
double stats_sort(double *values, size_t count);

/* count >= 1. STATUS_SYSTEM: no memory. */
enum status stats_compute(const double *values, size_t count, struct stats *stats,
                          struct error *error);

/* Sets median, median_low and median_high of two or more rounds. If the same number of rounds runs
 * again, their median is in the interval in 95 % of cases. The interval is median +- t s sqrt(2 c).
 * t is the 97.5 % quantile of Student's t with count - 1 degrees of freedom, and s the standard
 * deviation of the rounds. c = pi / (2 count + pi - 2) is the variance of the median of `count`
 * normal values, divided by the variance of the values. (Hahn and Meeker, Statistical Intervals,
 * 1991, section 4.8, have the formula for means, where c is 1 / count.) */
enum status stats_rounds(const double *values, size_t count, struct stats *stats,
                         struct error *error);

/* Half the width of the confidence interval, divided by the median. NaN without an interval: the
 * stopping rule's `<= stop` is then false. */
double stats_uncertainty(const struct stats *stats);

/* Sets *two to whether the values have two modes: a cut of the sorted values leaves at least a
 * tenth of the values on each side, and less than a tenth of the variance within the sides. The
 * medians of the sides must also differ by more than 2 % of the lower one, because the steps of a
 * timer can make smaller differences. Fewer than STATS_MODES_LEAST values never have two modes.
 * count >= 1. STATUS_SYSTEM: no memory. */
enum { STATS_MODES_LEAST = 20 };
enum status stats_two_modes(const double *values, size_t count, bool *two, struct error *error);
