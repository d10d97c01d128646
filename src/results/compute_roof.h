/* The compute roof of a row: what the units that it uses could do at the row's own clock. Pure.
 *
 * Power and heat let a short row have another clock than a roof, which loads the device for longer. For
 * each cycle both are equal: so the roof is FLOPs for each cycle, as the device's best roof of that unit
 * and precision had them (struct device, cycle_*), times the clock that the row's multiprocessors counted
 * meanwhile. */
#ifndef ROOFSWEEP_COMPUTE_ROOF_H
#define ROOFSWEEP_COMPUTE_ROOF_H

#include "model/device.h"

struct compute_roof {
    double peak;      /* s-1, at `clock`; where either is missing, the roof at its own clock */
    double sustained; /* s-1, once the clock has settled under this load; missing if not measured */
};

/* unit: enum unit; another value, or PRECISION_COUNT: all is missing. clock: s-1. */
struct compute_roof compute_roof_of(const struct device *device, int64_t unit,
                                    enum precision precision, double clock);

#endif
