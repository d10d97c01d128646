/* Everything that a sweep has produced so far: sessions, devices and rows. Of a record only its row is in
 * memory; the record itself stays in the journal and is fetched from there.
 *
 * Filled by journal_read, consumed by results_nc and report. Owns all it holds. */
#ifndef ROOFSWEEP_RESULTS_H
#define ROOFSWEEP_RESULTS_H

#include <stddef.h>

#include "base/status.h"
#include "model/device.h"
#include "model/record.h"
#include "results/row.h"
#include "results/session.h"

struct results {
    struct session *sessions;
    size_t session_count;
    struct device *devices;
    size_t device_count;
    struct row *rows; /* one per configuration (and device, with distribute = replicate) */
    size_t row_count;
};

struct results *results_create(void);          /* NULL without memory */
void results_destroy(struct results *results); /* takes NULL */

/* Take over the contents of what they are given (which is then empty). A record of the same
 * configuration and device replaces the earlier one. */
enum status results_add_session(struct results *results, struct session *session,
                                struct error *error);
enum status results_add_device(struct results *results, const struct device *device,
                               struct error *error);
enum status results_add_row(struct results *results, struct row *row, struct error *error);
/* A record that is in no journal. */
enum status results_add_record(struct results *results, struct record *record, struct error *error);

/* The journal in which the rows' places are. It is kept open. */
enum status results_attach(struct results *results, const char *journal, struct error *error);

/* The row's record, parsed anew each time; the caller clears it. STATUS_SYSTEM: it cannot be read, or the
 * line holds no record, whatever its checksum. */
enum status results_fetch(const struct results *results, const struct row *row,
                          struct record *record, struct error *error);

/* Puts the devices, which were added as they arrived, in the order of sessions and ranks. */
void results_order_devices(struct results *results);

/* Index into devices, or -1. */
int64_t results_device(const struct results *results, const char *key);

/* Spread of each of a device's roofs over the devices of its node: highest minus lowest value, over
 * the mean, among devices of the same host, kind and session; NaN if there are fewer than two. */
void results_node_spreads(const struct results *results, size_t device, double spreads[ROOFS_MAX]);

/* All rows in the order of row_compare, whoever finished first. The caller frees the array; NULL
 * without memory. */
const struct row **results_order(const struct results *results);

#endif
