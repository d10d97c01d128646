/* How long a configuration will take, from preparing to its record, judged by what others took.
 *
 * Measured: configurations of the same workload are put together by their modelled duration, a factor of two
 * in each class. A class that has been measured takes as long as its longest one. One that has not takes no
 * longer than the next class of larger work, and no longer than the next one of smaller work, scaled by the
 * model. Half as much again is added.
 *
 * Assumed, of a class that has not been measured: no longer than on a slow device, which takes 5 s, and for
 * twice all iterations 10 GFLOP/s and 1 GB/s; if one took longer than that, all do by the same factor. Without
 * a modelled cost: as long as the longest such one that was measured.
 *
 * Never more than `timeout`: an attempt is ended then. */
#ifndef ROOFSWEEP_FORECAST_H
#define ROOFSWEEP_FORECAST_H

#include <stdbool.h>

#include "model/measurement.h"
#include "model/workload.h"

struct forecast;

/* timeout: s, of one attempt. NULL without memory. */
struct forecast *forecast_create(const struct measure_settings *measure, double timeout);
void forecast_destroy(struct forecast *forecast); /* takes NULL */

/* A configuration of this workload and modelled cost took so long, s. */
void forecast_learn(struct forecast *forecast, const struct workload *workload, struct cost cost,
                    double seconds);

struct estimate {
    double seconds;
    bool measured; /* from what others took; false: assumed */
};
struct estimate forecast_estimate(const struct forecast *forecast, const struct workload *workload,
                                  struct cost cost);

/* s of one iteration on an imagined device of 10 TFLOP/s and 1 TB/s, which only orders configurations. NaN
 * where the cost is not modelled, 0 where a configuration cannot exist. */
double forecast_modelled(struct cost cost);

#endif
