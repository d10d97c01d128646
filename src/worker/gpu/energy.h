/* Power and energy by the device's own counter. */
#pragma once

#include "worker/gpu/work.h"

/* What the device draws without work, W; NaN: not yet measured. */
struct resting_power {
    double idle;     /* awake, and left alone */
    double constant; /* clocked up, by a kernel of one thread that waits */
};

/* Something that is done over and over. */
struct energy_load {
    /* Enqueues it once. NULL: the device is left alone. */
    enum status (*launch)(void *argument, struct error *error);
    void *argument;
    double time; /* s, of one launch, as it should be */
};

/* Means between two steps of the counter; NaN: they cannot be known to 2 %, or there is no
 * counter. */
struct energy_means {
    double power; /* W */
    double time;  /* s, of one launch */
};

/* Repeats the load for as long as 2 % need, from ENERGY_TIME to 3 s. */
enum status energy_measure(struct gpu *gpu, const struct energy_load *load,
                           struct energy_means *seen, struct error *error);

/* Measures what is NaN of *resting, once; `constant`: both. */
enum status energy_rest(struct gpu *gpu, bool constant, struct resting_power *resting,
                        struct error *error);

/* As device_ops.energy. What stands between iterations is no part of them, so work that needs that,
 * and work with cold caches, has no energy. */
enum status energy_run(struct gpu *gpu, struct work *work, bool cold, struct resting_power *resting,
                       struct record *record, struct error *error);
