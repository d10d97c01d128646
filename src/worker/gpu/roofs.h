/* The roofs of the open GPU: the fastest way to do each, its proof by the counters, its
 * measurement. */
#pragma once

#include <stdbool.h>

#include "model/roof.h"
#include "worker/device_ops.h"

struct gpu;
struct profiler;
struct resting_power;
struct roofs; /* those that were tuned, and the memory that they need */

/* As device_ops.tune_roofs. The caller closes *roofs; it is NULL after a failure. `profiler`,
 * whose counters can be read, proves what was found; NULL: nobody does. `gpu` must outlive it. */
enum status roofs_tune(struct roofs **roofs, struct gpu *gpu, struct profiler *profiler,
                       const struct roof_request *request, bool found[ROOF_KINDS],
                       struct error *error);

/* As device_ops.measure_roof and keep_busy; `roofs` NULL: none was tuned. *resting: see
 * energy_rest. */
enum status roofs_measure(struct roofs *roofs, int kind, const struct roof_order *order,
                          struct resting_power *resting, struct roof *roof, struct error *error);
enum status roofs_keep_busy(struct roofs *roofs, int kind, bool (*more)(void *argument),
                            void *argument, struct error *error);

void roofs_close(struct roofs *roofs); /* takes NULL */
