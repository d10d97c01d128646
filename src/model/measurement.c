#include "model/measurement.h"

#include <stddef.h>

const char *const counters_words[] = {
    [COUNTERS_AUTO] = "auto", [COUNTERS_REQUIRE] = "require", [COUNTERS_OFF] = "off", NULL};

const struct measure_settings measure_default = {
    .warmup = 5,
    .iterations = 20,
    .min_time = 0.5,
    .max_time = 15,
    .counters = COUNTERS_AUTO,
    .verify = true,
};
