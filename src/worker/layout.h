/* `layout = auto`: prepares both layouts and keeps the faster one. Devices know only named layouts.
 */
#pragma once

#include "worker/device_ops.h"

/* As device_ops.prepare, for any configuration. With `layout = auto` the function sets in *record
 * layout_chosen, search_time of the chosen layout, and layout_other_time, the time of the other
 * layout. layout_other_time is missing if the device takes only one layout. If the device still
 * runs the kernels of the offered algorithm (record->offer), its layout is kept without a
 * comparison. If the device takes neither layout, the error is that of the second attempt. */
enum status layout_prepare(const struct device_ops *device, struct device_state *state,
                           const struct config *config, uint64_t seed, struct work **work,
                           struct record *record, struct error *error);
