/* Rank 0's half of a sweep: hands out configurations, journals what comes back, knows when all is
 * done.
 *
 * Driven by letters alone; it never waits, and knows no MPI. */
#ifndef ROOFSWEEP_COORDINATOR_H
#define ROOFSWEEP_COORDINATOR_H

#include <stdbool.h>

#include "results/journal.h"
#include "base/log.h"
#include "ranks/post.h"
#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "results/results.h"

struct coordinator_settings {
    const struct manifest *manifest;
    const struct plan *plan;
    const struct results *earlier; /* what the journal already holds; NULL: nothing */
    const struct device *devices;  /* of each rank, as opened */
    int ranks;
};

struct coordinator;

/* Everything given stays the caller's; `settings` only need to live during the call, except
 * manifest and plan. The post is copied. NULL without memory. */
struct coordinator *coordinator_create(const struct coordinator_settings *settings,
                                       struct journal *journal, const struct post *post,
                                       const struct log *log);
void coordinator_destroy(struct coordinator *coordinator); /* takes NULL */

void coordinator_handle(struct coordinator *coordinator, const struct letter *letter);
/* A signal arrived: nothing more is handed out, and all workers are stopped. */
void coordinator_interrupt(struct coordinator *coordinator);
/* Every rank has said its last word. */
bool coordinator_finished(const struct coordinator *coordinator);

/* How it ended: STATUS_OK; STATUS_FAILED after max_failures; STATUS_DEVICE if no rank is left that
 * can measure, or with replicate if a device was lost before it had measured everything;
 * STATUS_INTERRUPTED; STATUS_SYSTEM if the journal could not be written. */
enum status coordinator_status(const struct coordinator *coordinator, struct error *error);

/* Configurations of the plan that these results lack, on any device. */
size_t coordinator_missing(const struct plan *plan, const struct results *results);

#endif
