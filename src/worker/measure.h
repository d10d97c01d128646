/* Everything that is done for one configuration, in this order: prepare, warm up, time, take the
 * energy, trace, count, verify.
 *
 * Timing, trace and counters are separate runs of the same work, because both others change
 * times. */
#ifndef ROOFSWEEP_MEASURE_H
#define ROOFSWEEP_MEASURE_H

#include "model/protocol.h"
#include "worker/device_ops.h"

/* Fills in *record, which was initialised: measured, skipped (the device does not offer it, with
 * the reason) or failed (a wrong result, a library error). Only a lost device is an error:
 * STATUS_DEVICE. */
enum status measure_config(const struct device_ops *device, struct device_state *state,
                           const struct request *request, struct record *record,
                           struct error *error);

/* The outcome for counters where the device has none. */
extern const struct outcome measure_no_counters;

#endif
