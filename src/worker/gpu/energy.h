/* Power and energy from the device's energy counter. */
#pragma once

#include "worker/gpu/work.h"

/* Power without work, W; NaN: not measured yet. */
struct resting_power {
    double idle;     /* W, awake and without any kernel */
    double constant; /* W, at a raised clock while one thread waits */
};

/* A load that is launched again and again. */
struct energy_load {
    /* Enqueues one launch. NULL: the device stays idle. */
    enum status (*launch)(void *argument, struct error *error);
    void *argument;
    double time; /* s, expected duration of a launch */
};

/* Means between two steps of the counter. NaN: uncertain by more than 2 %, or no counter. */
struct energy_means {
    double power; /* W */
    double time;  /* s, time of a launch */
};

/* Repeats the load until the power is known to 2 %, for ENERGY_TIME to 3 s. */
enum status energy_measure(struct gpu *gpu, const struct energy_load *load,
                           struct energy_means *means, struct error *error);

/* Measures the members of *resting that are NaN: idle; with `constant`, also constant. */
enum status energy_rest(struct gpu *gpu, bool constant, struct resting_power *resting,
                        struct error *error);

/* As device_ops.energy. Rows with a cold cache, or with a preparation between iterations, have no
 * energy: the counter would include the preparation. */
enum status energy_run(struct gpu *gpu, struct work *work, bool cold, struct resting_power *resting,
                       struct record *record, struct error *error);
