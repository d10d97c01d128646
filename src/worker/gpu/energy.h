/* Power and energy from the device's energy counter. */
#pragma once

#include "worker/gpu/work.h"

/* Power without work; NaN: not measured yet. */
struct resting_power {
    double idle;     /* W, awake and without any kernel */
    double constant; /* W, while one thread waits at a raised clock */
};

struct energy_load {
    /* Enqueues one launch. NULL: the device stays idle. */
    enum status (*launch)(void *argument, struct error *error);
    void *argument;
    double time; /* s, expected duration of a launch */
};

/* Means between two steps of the energy counter. NaN: no counter, or uncertain by more than 2 %. */
struct energy_means {
    double power; /* W */
    double time;  /* s, time of a launch */
};

/* Repeats the load until the power is known to 2 %, for ENERGY_TIME to 3 s. */
enum status energy_measure(struct gpu *gpu, const struct energy_load *load,
                           struct energy_means *means, struct error *error);

/* Measures resting->idle, and with `constant` also resting->constant, unless they are known. */
enum status energy_rest(struct gpu *gpu, bool constant, struct resting_power *resting,
                        struct error *error);

/* As device_ops.energy. Values stay missing with flushes or preparations between iterations. */
enum status energy_run(struct gpu *gpu, struct work *work, bool cold, struct resting_power *resting,
                       struct record *record, struct error *error);
