/* Metrics that are counted together on one chip: their configuration, the number of passes, and the
 * evaluation of counter data. Needs neither GPU nor driver. Not thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <cupti_result.h>

#include "worker/cuda/profiling/formulas.h"

#ifdef __cplusplus
extern "C" {
#endif

struct metric_set {
    const char *metrics[FORMULAS_METRICS_MAX];
    size_t count;
    struct CUpti_Profiler_Host_Object *host; /* owned; NULL: the set is closed */
    uint8_t *config;                         /* owned: configuration of the range profiler */
    size_t config_size;                      /* byte */
    size_t passes;
};

/* Opens a set with `metrics` and `count`; all other members must be zero, and are zero after a
 * failure. availability: the device's counter availability image; NULL: all counters. */
CUptiResult metric_set_open(struct metric_set *set, const char *chip, const uint8_t *availability);
void metric_set_close(struct metric_set *set); /* takes a closed set */

/* Sets values[] to all metrics of one range of a counter data image. */
CUptiResult metric_set_evaluate(const struct metric_set *set, const uint8_t *image, size_t size,
                                size_t range, double *values);

#ifdef __cplusplus
}
#endif
