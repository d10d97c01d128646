/* The rows of a worker that are timed and wait for their counters, which are read for all of them
 * together: to have counters programmed costs far more than to read them.
 *
 * A row is measured as ever, alone on the device, and then stays prepared, with the algorithm that
 * was chosen. Nothing of it may show in the next row: where the device has no room for that, those
 * that wait are counted first, and a row that was not measured well beside others is measured again
 * without them. To count, the device repeats each row within each pass of its counters, with the
 * caches as when it was timed. So what a row counts depends neither on its neighbours nor on their
 * order.
 *
 * A row that could not be counted together with others is counted alone, and then says why not, if
 * it cannot. Not thread-safe. */
#pragma once

#include "worker/measure.h"

struct batch;

/* NULL without memory. The table of functions must outlive it. */
struct batch *batch_create(const struct device_ops *device);
/* Drops the rows that wait. `state`: of the open device; NULL: it is lost, or was never opened.
 * Takes NULL. */
void batch_destroy(struct batch *batch, struct device_state *state);

/* Measures one configuration. *waits: it is timed, and its record comes from batch_take; it waits
 * only if the request says so and there is something to count. Otherwise *record, which was
 * initialised, is complete: measured, skipped or failed. STATUS_DEVICE; STATUS_SYSTEM without
 * memory. */
enum status batch_measure(struct batch *batch, struct device_state *state,
                          const struct request *request, struct record *record, bool *waits,
                          struct error *error);

/* Counts all that wait, if there are any. STATUS_DEVICE. */
enum status batch_count(struct batch *batch, struct device_state *state, struct error *error);

/* The record of the row that has waited longest; before the first one all are counted. The caller
 * owns it. STATUS_USAGE: none waits. STATUS_DEVICE. */
enum status batch_take(struct batch *batch, struct device_state *state, struct record *record,
                       struct error *error);
