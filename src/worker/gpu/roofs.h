/* The roofs of the open GPU: their fastest variants, proofs and measurements. */
#pragma once

#include <stdbool.h>

#include "model/roof.h"
#include "worker/device_ops.h"

struct gpu;
struct profiler;
struct resting_power;
struct roofs; /* the tuned roofs, with their memory */

/* As device_ops.tune_roofs. The caller closes *roofs (NULL after a failure) before `gpu`. */
enum status roofs_tune(struct roofs **roofs, struct gpu *gpu, const struct roof_request *request,
                       bool found[ROOF_KINDS], struct error *error);

/* Proves the tuned variants by the counters, which must be readable. */
enum status roofs_prove(struct roofs *roofs, struct profiler *profiler, struct error *error);

/* As device_ops.measure_roof and keep_busy. roofs NULL: nothing was tuned. See energy_rest. */
enum status roofs_measure(struct roofs *roofs, int kind, const struct roof_order *order,
                          struct resting_power *resting, struct roof *roof, struct error *error);
enum status roofs_keep_busy(struct roofs *roofs, int kind, bool (*more)(void *argument),
                            void *argument, struct error *error);

void roofs_close(struct roofs *roofs); /* takes NULL */
