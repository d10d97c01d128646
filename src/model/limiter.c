#include "model/limiter.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *const limiter_name[] = {"compute",  "bandwidth", "latency", "kernel",
                                    "overhead", "host",      "unknown", NULL};

/* A known part above one half is the largest, whatever the unknown ones are. But compute and bandwidth go on at the same
 * time: one of them says nothing without the other. */
static bool is_decided(const struct limiter_shares *shares)
{
    const double half = 0.5;
    const bool roofs = !isnan(shares->compute) && !isnan(shares->bandwidth);
    return (roofs && !isnan(shares->gap)) || shares->gap > half ||
           (roofs && fmax(shares->compute, shares->bandwidth) > half);
}

static enum limiter limiter_of_rest(double few_blocks)
{
    const double half = 0.5;
    if (isnan(few_blocks))
        return LIMITER_UNKNOWN;
    return few_blocks > half ? LIMITER_LATENCY : LIMITER_KERNEL;
}

/* fmax passes over a NaN. */
enum limiter limiter_of(const struct limiter_shares *shares)
{
    double compute = fmax(shares->compute, 0), bandwidth = fmax(shares->bandwidth, 0);
    double explained = fmax(compute, bandwidth), gap = fmax(shares->gap, 0);
    double rest = 1 - gap - explained;
    if (shares->host > 1)
        return LIMITER_HOST;
    if (!is_decided(shares))
        return LIMITER_UNKNOWN;
    if (gap > fmax(explained, rest))
        return LIMITER_OVERHEAD;
    if (rest > explained)
        return limiter_of_rest(shares->few_blocks);
    return compute >= bandwidth ? LIMITER_COMPUTE : LIMITER_BANDWIDTH;
}

static void percent_format(double share, char text[16])
{
    if (isnan(share))
        snprintf(text, 16, "unknown");
    else
        snprintf(text, 16, "%.1f %%", 100 * share);
}

void limiter_evidence(const struct limiter_shares *shares, const char *level,
                      char text[LIMITER_TEXT])
{
    char compute[16], bandwidth[16], gap[16], host[16], few[16];
    percent_format(shares->compute, compute);
    percent_format(shares->bandwidth, bandwidth);
    percent_format(shares->gap, gap);
    percent_format(shares->host, host);
    percent_format(shares->few_blocks, few);
    snprintf(
        text, LIMITER_TEXT,
        "of the time: FLOPs at their roofs %s, bytes at the roof of %s %s, idle between kernels "
        "%s, host %s; of the kernels' time without enough parallelism: %s",
        compute, *level ? level : "no level", bandwidth, gap, host, few);
}
