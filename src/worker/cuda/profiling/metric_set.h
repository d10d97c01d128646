/* The metrics that are counted together on one chip: what to configure the profiler with, how many
 * passes it takes, and what the counted data mean. In C for cupti_profiler_host.h, which is C++.
 *
 * Needs neither GPU nor driver. Not thread-safe. Outputs are set on CUPTI_SUCCESS only. */
#ifndef ROOFSWEEP_METRIC_SET_H
#define ROOFSWEEP_METRIC_SET_H

#include <stddef.h>
#include <stdint.h>
#include <cupti_result.h>

#ifdef __cplusplus
extern "C" {
#endif

struct metric_set;

/* `metrics` and what it points to must outlive the set. `availability` is the device's counter
 * availability image, or NULL: all counters of the chip. */
CUptiResult metric_set_create(const char *chip, const uint8_t *availability,
                              const char *const *metrics, size_t count, struct metric_set **set);
void metric_set_destroy(struct metric_set *set); /* takes NULL */

const char *const *metric_set_metrics(const struct metric_set *set, size_t *count);
const uint8_t *metric_set_config(const struct metric_set *set, size_t *size);
size_t metric_set_passes(const struct metric_set *set);

/* The metrics of one range of a counter data image, in the order of the list. */
CUptiResult metric_set_evaluate(struct metric_set *set, const uint8_t *image, size_t size,
                                size_t range, double *values);

/* All chips that this CUPTI knows by name; they belong to CUPTI. */
CUptiResult metric_set_chips(const char *const **chips, size_t *count);

#ifdef __cplusplus
}
#endif
#endif
