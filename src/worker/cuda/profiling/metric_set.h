/* The metrics that are counted together on one chip: what to configure the profiler with, how many
 * passes it takes, and what the counted data mean. In C for cupti_profiler_host.h, which is C++.
 *
 * Needs neither GPU nor driver. Not thread-safe. */
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
    uint8_t *config;                         /* owned: what the profiler is configured with */
    size_t config_size;                      /* byte */
    size_t passes;
};

/* The caller has set `metrics` and `count`; all else is zero, as it is again on failure.
 * `availability` is the device's counter availability image, or NULL: all counters of the chip. */
CUptiResult metric_set_open(struct metric_set *set, const char *chip, const uint8_t *availability);
void metric_set_close(struct metric_set *set); /* nothing happens if it is closed */

/* The metrics of one range of a counter data image, in the order of the list. */
CUptiResult metric_set_evaluate(const struct metric_set *set, const uint8_t *image, size_t size,
                                size_t range, double *values);

/* All chips that this CUPTI knows by name; they belong to CUPTI. */
CUptiResult metric_set_chips(const char *const **chips, size_t *count);

#ifdef __cplusplus
}
#endif
