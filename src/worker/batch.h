/* A batch: timed rows that wait until their counters are read. The device counts all rows of a
 * batch together, because setting up counters takes far longer than reading them.
 *
 * Each row is timed alone on the device, and then stays prepared, with its algorithm, until it is
 * counted. Waiting rows must not influence the next row: they are counted first if the device has
 * no room for the next row, and a row that failed beside them is measured again without them. In
 * each pass of the counters the device repeats every row, with the caches in the same state as for
 * timing, so counts depend neither on the other rows nor on their order. A row without counts
 * is counted again alone; if that fails, its record has the reason. Not thread-safe. */
#pragma once

#include "worker/measure.h"

struct batch;

/* NULL: no memory. *device must outlive the batch. */
struct batch *batch_create(const struct device_ops *device);
/* Drops the waiting rows. `state` NULL: the device is lost or was never opened. Takes NULL. */
void batch_destroy(struct batch *batch, struct device_state *state);

/* Measures one configuration. If the request has count_later and there is something to count, the
 * row is only timed: *waits becomes true, and batch_take returns the record later. Otherwise
 * *record, which the caller has initialised, is complete: measured, skipped or failed.
 * STATUS_DEVICE: the device is lost. STATUS_SYSTEM: no memory. */
enum status batch_measure(struct batch *batch, struct device_state *state,
                          const struct request *request, struct record *record, bool *waits,
                          struct error *error);

/* Counts all waiting rows. STATUS_DEVICE: the device is lost. */
enum status batch_count(struct batch *batch, struct device_state *state, struct error *error);

/* Returns the record of the row that has waited longest; the caller owns it. Counts all waiting
 * rows first. STATUS_USAGE: no row waits. STATUS_DEVICE: the device is lost. */
enum status batch_take(struct batch *batch, struct device_state *state, struct record *record,
                       struct error *error);
