#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the largest rank with P(X < rank) <= 0.025, where X is binomial (`count`, 1/2). The
 * interval goes from the rank-th smallest to the rank-th largest of `count` values. 0: there is no
 * interval. Sums exponentials of logarithms, because 2^-count underflows. */
static size_t median_rank(size_t count)
{
    const double most = 0.025; /* probability on either side */
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

static double median_of(const double *sorted, size_t count)
{
    return sorted[(count - 1) / 2] / 2 + sorted[count / 2] / 2;
}

double stats_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return median_of(values, count);
}

/* The caller frees it; NULL: no memory. */
static double *sorted_copy(const double *values, size_t count, struct error *error)
{
    double *copy = malloc(count * sizeof *copy);
    if (copy)
        stats_sort(memcpy(copy, values, count * sizeof *copy), count);
    else
        error_set(error, STATUS_SYSTEM, "no memory for %zu samples", count);
    return copy;
}

enum status stats_compute(const double *values, size_t count, struct stats *stats,
                          struct error *error)
{
    double *sorted = sorted_copy(values, count, error);
    if (!sorted)
        return STATUS_SYSTEM;
    size_t rank = median_rank(count);
    stats->median = median_of(sorted, count);
    stats->median_low = rank ? sorted[rank - 1] : NAN;
    stats->median_high = rank ? sorted[count - rank] : NAN;
    stats->min = sorted[0];
    stats->max = sorted[count - 1];
    free(sorted);
    /* Makes two passes, because the one-pass formula (sum of squares less square of the sum) loses
     * all digits if the deviation is small. */
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; ++i)
        sum += values[i];
    stats->mean = sum / (double)count;
    for (size_t i = 0; i < count; ++i)
        squares += (values[i] - stats->mean) * (values[i] - stats->mean);
    stats->stdev = count < 2 ? NAN : sqrt(squares / (double)(count - 1));
    return STATUS_OK;
}

enum status stats_rounds(const double *values, size_t count, struct stats *stats,
                         struct error *error)
{
    /* 0.975 quantiles of Student's t, for 1 degree of freedom and more. */
    static const double t[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                               2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                               2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                               2.060,  2.056, 2.052, 2.048, 2.045};
    const size_t last = sizeof t / sizeof *t - 1, place = count - 2 < last ? count - 2 : last;
    TRY(stats_compute(values, count, stats, error));
    const double variance = M_PI / (2 * (double)count + M_PI - 2);
    const double half = t[place] * stats->stdev * sqrt(2 * variance);
    stats->median_low = fmax(stats->median - half, 0);
    stats->median_high = stats->median + half;
    return STATUS_OK;
}

double stats_uncertainty(const struct stats *stats)
{
    return (stats->median_high - stats->median_low) / 2 / stats->median;
}

/* Finds the cut that leaves the least variance within its two sides. For comparison: a uniform
 * distribution keeps a quarter of its variance, a normal one 36 %. The lowest and the highest
 * twentieth of the values are clipped to the next value inwards, because the square of one
 * straggler would outweigh all else. */
static bool has_two_modes(const double *sorted, size_t count)
{
    const double matters = 0.02, rest_most = 0.1;
    const double bottom = sorted[count / 20], top = sorted[count - 1 - count / 20];
    size_t least = (count + 9) / 10, cut = least;
    double sum = 0.0, squares = 0.0, low = 0.0, best = 0.0;
    for (size_t i = 0; i < count; ++i) {
        double value = fmin(fmax(sorted[i], bottom), top) - bottom;
        sum += value;
        squares += value * value;
    }
    double variance = squares - sum * sum / (double)count;
    for (size_t i = 1; i <= count - least; ++i) {
        low += fmin(fmax(sorted[i - 1], bottom), top) - bottom;
        double high = sum - low, n = (double)i, m = (double)(count - i);
        double between = low * low / n + high * high / m - sum * sum / (double)count;
        if (i >= least && between > best) {
            best = between;
            cut = i;
        }
    }
    double lower = median_of(sorted, cut), upper = median_of(sorted + cut, count - cut);
    return variance - best < rest_most * variance && upper - lower > matters * lower;
}

enum status stats_two_modes(const double *values, size_t count, bool *two, struct error *error)
{
    double *sorted = sorted_copy(values, count, error);
    if (!sorted)
        return STATUS_SYSTEM;
    *two = count >= STATS_MODES_LEAST && has_two_modes(sorted, count);
    free(sorted);
    return STATUS_OK;
}
