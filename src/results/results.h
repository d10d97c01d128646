/* Everything that a sweep has produced so far: sessions, devices, records, as rows.
 *
 * Filled by journal_read, consumed by results_nc and report. Owns all it holds. */
#ifndef ROOFSWEEP_RESULTS_H
#define ROOFSWEEP_RESULTS_H

#include <stddef.h>

#include "base/status.h"
#include "model/device.h"
#include "model/record.h"
#include "results/session.h"

struct results {
    struct session *sessions;
    size_t session_count;
    struct device *devices;
    size_t device_count;
    struct record *records; /* one per configuration (and device, with distribute = replicate) */
    size_t record_count;
};

struct results *results_create(void);          /* NULL without memory */
void results_destroy(struct results *results); /* takes NULL */

/* Take over the contents of what they are given (which is then empty). A record of the same
 * configuration and device replaces the earlier one. */
enum status results_add_session(struct results *results, struct session *session,
                                struct error *error);
enum status results_add_device(struct results *results, const struct device *device,
                               struct error *error);
enum status results_add_record(struct results *results, struct record *record, struct error *error);

/* Puts the devices, which were added as they arrived, in the order of sessions and ranks. */
void results_order_devices(struct results *results);

/* Index into devices, or -1. */
int64_t results_device(const struct results *results, const char *key);

/* Spread of each of a device's roofs over the devices of its node: highest minus lowest value, over
 * the mean, among devices of the same host, kind and session; NaN if there are fewer than two. */
void results_node_spreads(const struct results *results, size_t device, double spreads[ROOFS_MAX]);

/* All records in the order in which people read them, whoever finished first: by label,
 * configuration (numbers in it as numbers) and device. The caller frees the array; NULL without
 * memory. */
const struct record **results_order(const struct results *results);

#endif
