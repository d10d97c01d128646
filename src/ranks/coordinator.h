/* Rank 0's half of a sweep: hands out configurations, journals what comes back, knows when all is
 * done.
 *
 * Driven by letters and by the time that coordinator_watch is told; it never waits, and knows no MPI.
 *
 * A rank that is silent for longer than its patience counts as lost: what it measures goes to another
 * rank. If it writes again, it takes part again; of two records of one configuration the first is kept.
 *
 * Rows of a rank may wait until their counters are read together: as many as [measure] count_together or its
 * device says, or until 10 s of their timings would be lost with the worker; a little fewer where that lets ranks
 * of a host count at different times (turn.h). They are counted, too, when there is nothing more for that rank.
 * What is lost before it was counted is handed out again, to be counted by itself.
 *
 * With a time limit, nothing is handed out that cannot end before it (forecast.h). When nothing that is left
 * can, or the limit has come, the sweep ends, and says what is left. */
#ifndef ROOFSWEEP_COORDINATOR_H
#define ROOFSWEEP_COORDINATOR_H

#include <stdbool.h>

#include "results/choices.h"
#include "results/journal.h"
#include "base/log.h"
#include "ranks/post.h"
#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "ranks/time_limit.h"
#include "results/results.h"

struct coordinator_settings {
    const struct manifest *manifest;
    const struct plan *plan;
    const struct results *earlier; /* what the journal already holds; NULL: nothing */
    const struct device *devices;  /* of each rank, as opened */
    int ranks;
    /* s, how long a rank may say nothing; 0: for ever */
    double
        roofs_patience; /* before it has a device with roofs, from the first coordinator_watch on */
    double work_patience; /* while it measures a configuration */
    double
        count_patience; /* in addition, for each that it has timed and that waits for its counters */
    double stop_patience;           /* after LETTER_STOP */
    const struct time_limit *limit; /* NULL: there is none */
    struct choices *choices;        /* of algorithms; NULL: none are kept */
};

struct coordinator;

/* Everything given stays the caller's; `settings` only need to live during the call, except
 * manifest, plan, devices and choices. The post is copied. NULL without memory. */
struct coordinator *coordinator_create(const struct coordinator_settings *settings,
                                       struct journal *journal, const struct post *post,
                                       const struct log *log);
void coordinator_destroy(struct coordinator *coordinator); /* takes NULL */

void coordinator_handle(struct coordinator *coordinator, const struct letter *letter);
/* After the letters of a moment: what they brought is on disk, by one sync, and only then those who wrote
 * get more work, or hear of the end. */
void coordinator_settle(struct coordinator *coordinator);
/* A signal arrived: nothing more is handed out, and all workers are stopped. */
void coordinator_interrupt(struct coordinator *coordinator);
/* `now`: s, never less than before. To be called before the letters of that moment are handled. */
void coordinator_watch(struct coordinator *coordinator, double now);
/* Every rank has said its last word, or is silent beyond stop_patience. */
bool coordinator_finished(const struct coordinator *coordinator);
/* Ranks that have not said their last word, with their hosts: "rank 3 on node7, rank 5 on node8". False:
 * there are none. */
bool coordinator_absent(const struct coordinator *coordinator, char *text, size_t size);

/* Configurations that have no row yet; with replicate those of each rank. */
size_t coordinator_left(const struct coordinator *coordinator);

/* How it ended: STATUS_OK; STATUS_FAILED after max_failures; STATUS_DEVICE if no rank is left that
 * can measure, or with replicate if a device was lost before it had measured everything;
 * STATUS_INTERRUPTED, also by the time limit, but STATUS_FAILED if no run with this limit can measure what is
 * left; STATUS_SYSTEM if the journal could not be written. */
enum status coordinator_status(const struct coordinator *coordinator, struct error *error);

#endif
