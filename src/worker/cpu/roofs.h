/* tune_roofs, measure_roof, keep_busy and release_roofs of device_ops for these cores. */
#pragma once

#include "worker/device_ops.h"

enum status roofs_tune(struct device_state *state, const struct roof_request *request, bool prove,
                       bool found[ROOF_KINDS], struct error *error);
enum status roofs_measure(struct device_state *state, int kind, const struct roof_order *order,
                          struct roof *roof, struct error *error);
enum status roofs_keep_busy(struct device_state *state, int kind, bool (*more)(void *argument),
                            void *argument, struct error *error);
void roofs_release(struct device_state *state);
