/* The samples of a roof: short ones, before power and heat bring the clock down (the burst), and long
 * ones, once the clock has settled under the load (sustained). */
#ifndef ROOFSWEEP_ROOFS_SAMPLES_H
#define ROOFSWEEP_ROOFS_SAMPLES_H

#include "worker/cuda/roofs/family.h"
#include "worker/device_ops.h"

enum {
    SAMPLES_LEAST = 5,
    SAMPLES_MAX = 64 /* the timer needs two events for each */
};
#define SAMPLE_TIME (ROOF_WINDOW / 5) /* s, one sample, where a run's length can be chosen */

/* Takes samples for ROOF_WINDOW. Sets value, statistics, clock, power and conditions of *roof. start:
 * as of struct roof_order. */
enum status samples_burst(struct roofs *roofs, struct winner *winner, int kind, double start,
                          struct roof *roof, struct error *error);

/* Goes on with the work in windows of 0.1 s, until nothing limits the device, or the power limit is kept on the average,
 * or the clock has held still for 1 s; for 2 s at most. Sets the sustained_ members of *roof,
 * settling_time and settled. It may come after samples_burst; for families without `time`. */
enum status samples_sustain(struct roofs *roofs, const struct winner *winner, struct roof *roof,
                            struct error *error);

#endif
