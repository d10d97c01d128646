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

/* 0.975 quantile of Student's t. Above the table, the first terms of its expansion around the
 * normal quantile (Abramowitz and Stegun 26.7.5), right to 4 decimals there. */
static double student_quantile(size_t freedom)
{
    static const double table[] = {
        12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
        2.2010,  2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    };
    if (freedom <= sizeof table / sizeof table[0])
        return table[freedom - 1];
    const double z = 1.959964, v = (double)freedom;
    double first = (pow(z, 3) + z) / 4;
    double second = (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / 96;
    return z + first / v + second / (v * v);
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
    size_t half = count / 2;
    stats->median = count % 2 ? sorted[half] : sorted[half - 1] / 2 + sorted[half] / 2;
    stats->min = sorted[0];
    stats->max = sorted[count - 1];
    free(sorted);
    stats->mean = mean_of(values, count);
    stats->stdev = stdev_of(values, count, stats->mean);
    return STATUS_OK;
}

double stats_uncertainty(const double *values, size_t count)
{
    if (count < 2)
        return NAN;
    double mean = mean_of(values, count);
    double error_of_mean = stdev_of(values, count, mean) / sqrt((double)count);
    return student_quantile(count - 1) * error_of_mean / mean;
}
