/* The energy of one iteration, by the device's own counter. */
#ifndef ROOFSWEEP_ENERGY_H
#define ROOFSWEEP_ENERGY_H

#include "worker/gpu/work.h"

/* As device_ops.energy. What stands between iterations is no part of them, so work that needs that,
 * and work with cold caches, has no energy. *idle_power: W, of the GPU that is left alone; NaN: it
 * is measured first. */
enum status energy_run(struct gpu *gpu, struct work *work, bool cold, double *idle_power,
                       struct record *record, struct error *error);

#endif
