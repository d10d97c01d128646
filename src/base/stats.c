#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; ++i)
        sum += values[i];
    return sum / (double)count;
}

/* In two passes. The sum of squares less the square of the sum, in one pass, would lose all digits
 * where the deviation is small. */
static double stdev_of(const double *values, size_t count, double mean)
{
    if (count < 2)
        return NAN;
    double sum = 0;
    for (size_t i = 0; i < count; ++i)
        sum += (values[i] - mean) * (values[i] - mean);
    return sqrt(sum / (double)(count - 1));
}

/* Terms come from their logarithms: 2^-count is no double for many values. */
size_t stats_median_rank(size_t count)
{
    const double most = 0.025; /* on either side */
    double n = (double)count, sum = 0.0;
    for (size_t rank = 0; rank < count; ++rank) {
        double k = (double)rank;
        sum += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2));
        if (sum > most)
            return rank;
    }
    return 0;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum status stats_compute(const double *values, size_t count, struct stats *stats,
                          struct error *error)
{
    double *sorted = malloc(count * sizeof *sorted);
    if (!sorted)
        return error_set(error, STATUS_SYSTEM, "no memory for %zu samples", count);
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    size_t half = count / 2, rank = stats_median_rank(count);
    stats->median = count % 2 ? sorted[half] : sorted[half - 1] / 2 + sorted[half] / 2;
    stats->median_low = rank ? sorted[rank - 1] : NAN;
    stats->median_high = rank ? sorted[count - rank] : NAN;
    stats->min = sorted[0];
    stats->max = sorted[count - 1];
    free(sorted);
    stats->mean = mean_of(values, count);
    stats->stdev = stdev_of(values, count, stats->mean);
    return STATUS_OK;
}

double stats_uncertainty(const struct stats *stats)
{
    return (stats->median_high - stats->median_low) / 2 / stats->median;
}
