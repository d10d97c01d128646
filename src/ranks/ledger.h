/* What comes of a sweep, as rank 0 writes it down: devices and records into the journal, a line in the log for
 * what people should know at once, how many configurations failed, and how far the sweep is. */
#ifndef ROOFSWEEP_LEDGER_H
#define ROOFSWEEP_LEDGER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "ranks/progress.h"
#include "results/journal.h"

struct ledger; /* nothing given is owned */

/* `done` of `total` configurations were already there. NULL without memory. */
struct ledger *ledger_create(struct journal *journal, const struct log *log,
                             const struct manifest *manifest, const struct plan *plan, size_t done,
                             size_t total);
void ledger_destroy(struct ledger *ledger); /* takes NULL */

/* Steals the reference. From the last device on the time left is reckoned. STATUS_SYSTEM. */
enum status ledger_device(struct ledger *ledger, json_t *device, struct error *error);
/* The record of a plan item, whose JSON this is. Label and hash become the plan's, whatever a worker says: a
 * resumed sweep finds the row by its hash. `left`: after this one. Steals the reference. STATUS_SYSTEM. */
enum status ledger_record(struct ledger *ledger, size_t item, const struct record *record,
                          json_t *json, struct progress_left left, struct error *error);
/* One more is timed, and waits for its counters. */
void ledger_timed(struct ledger *ledger, struct progress_left left);
/* What was written is on disk. STATUS_SYSTEM. */
enum status ledger_sync(struct ledger *ledger, struct error *error);
/* As many configurations failed as max_failures allows. */
bool ledger_is_spent(const struct ledger *ledger);

#endif
