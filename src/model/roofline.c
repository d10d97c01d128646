#include "model/roofline.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

const char *const roofline_bound_name[] = {"compute", "bandwidth", "overhead", "unknown", NULL};

/* min(P, AI * W, F / (n * L)). Without bytes, there is no bandwidth ceiling; without a measured
 * overhead, there is no overhead ceiling (fmin ignores NaN). */
static double roof_of(const struct roofline_work *work, const struct roofline_roofs *roofs,
                      double intensity, double overhead)
{
    double bandwidth_roof = isinf(intensity) ? INFINITY : intensity * roofs->bandwidth;
    if (isnan(roofs->peak) || isnan(bandwidth_roof))
        return NAN;
    return fmin(fmin(roofs->peak, bandwidth_roof), work->flops / overhead);
}

/* The longer time is the run time; AI : M scales the shorter one. Without FLOPs or bytes, one of
 * the two times is 0, whatever M is. */
static void split_time(double time, struct roofline *r)
{
    bool one_sided = r->intensity == 0 || isinf(r->intensity);
    double share = one_sided ? r->intensity : r->intensity / r->balance;
    r->compute_time = isnan(share) ? NAN : time * fmin(1, share);
    r->bandwidth_time = isnan(share) ? NAN : time / fmax(1, share);
}

/* With a roof missing, T < n * L still shows overhead: T is never shorter than F / P and B / W. */
static enum roofline_bound bound_of(const struct roofline_work *work,
                                    const struct roofline_roofs *roofs, const struct roofline *r)
{
    const double overhead = r->overhead_time;
    if (work->time < overhead ||
        (work->flops / roofs->peak < overhead && work->bytes / roofs->bandwidth < overhead))
        return BOUND_OVERHEAD;
    if (isnan(r->compute_time) || isnan(r->bandwidth_time))
        return BOUND_UNKNOWN;
    return r->compute_time >= r->bandwidth_time ? BOUND_COMPUTE : BOUND_BANDWIDTH;
}

struct roofline roofline_evaluate(const struct roofline_work *work,
                                  const struct roofline_roofs *roofs)
{
    struct roofline r = {
        .intensity = work->flops / work->bytes,
        .performance = work->flops / work->time,
        .balance = roofs->peak / roofs->bandwidth,
        .overhead_time = work->launches * roofs->launch_overhead,
    };
    r.roof = roof_of(work, roofs, r.intensity, r.overhead_time);
    r.fraction =
        work->flops == 0 ? work->bytes / work->time / roofs->bandwidth : r.performance / r.roof;
    split_time(work->time, &r);
    r.bound = bound_of(work, roofs, &r);
    return r;
}
