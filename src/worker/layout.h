/* Decides `layout = auto`: prepares a row in both layouts and keeps the faster one. Devices only
 * see the layouts nhwc and nchw. */
#pragma once

#include "worker/device_ops.h"

/* As device_ops.prepare, for any configuration. With `layout = auto` the function sets in *record
 * layout_chosen, search_time of the chosen layout, and layout_other_time, the time of the other
 * layout. layout_other_time is missing if the device takes only one layout. If an algorithm is
 * offered (record->offer) and still has the same kernels, its layout is used without a comparison.
 * If the device supports neither layout, the error is that of the second one. */
enum status layout_prepare(const struct device_ops *device, struct device_state *state,
                           const struct config *config, uint64_t seed, struct work **work,
                           struct record *record, struct error *error);
