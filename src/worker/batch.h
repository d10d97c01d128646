/* Timed rows that wait for their counters. The device counts all rows of a batch together, because
 * programming counters costs far more than reading them.
 *
 * Each row is timed alone on the device, and then stays prepared, with its algorithm, until it is
 * counted. Waiting rows must not change the next row: if the device has no room, the waiting rows
 * are counted first; a row that failed beside waiting rows is measured again without them. To
 * count, the device repeats every row in each pass of the counters, with the caches as for timing,
 * so counts depend neither on the other rows nor on their order.
 *
 * A row that could not be counted with others is counted alone. If the second attempt fails, the
 * row's record says why. Not thread-safe. */
#pragma once

#include "worker/measure.h"

struct batch;

/* NULL: no memory. *device must outlive the batch. */
struct batch *batch_create(const struct device_ops *device);
/* Drops the waiting rows. `state` NULL: the device is lost or was never opened. Takes NULL. */
void batch_destroy(struct batch *batch, struct device_state *state);

/* Measures one configuration. *waits becomes true if the request has count_later and there is
 * something to count: the row is timed, and batch_take returns its record. Otherwise *record, which
 * was initialised, is complete: measured, skipped or failed. STATUS_DEVICE; STATUS_SYSTEM: no
 * memory. */
enum status batch_measure(struct batch *batch, struct device_state *state,
                          const struct request *request, struct record *record, bool *waits,
                          struct error *error);

/* Counts all waiting rows. STATUS_DEVICE. */
enum status batch_count(struct batch *batch, struct device_state *state, struct error *error);

/* Takes the record of the oldest row, which the caller then owns. Counts all rows before the first
 * one is taken. STATUS_USAGE: no row waits. STATUS_DEVICE. */
enum status batch_take(struct batch *batch, struct device_state *state, struct record *record,
                       struct error *error);
