/* `layout = auto`. Devices know named layouts alone: the worker prepares both and keeps the faster
 * one. */
#pragma once

#include "worker/device_ops.h"

/* As device_ops.prepare, for any configuration. For `layout = auto`, layout_chosen of *record names
 * the layout that is kept, search_time is its time, and layout_other_time that of the layout that
 * was released; missing if the device does not take both. If the device still
 * runs the kernels of the algorithm that is offered (record->offer), its layout is kept without a
 * comparison. If the device takes neither
 * layout, the error is that of the second. */
enum status layout_prepare(const struct device_ops *device, struct device_state *state,
                           const struct config *config, uint64_t seed, struct work **work,
                           struct record *record, struct error *error);
