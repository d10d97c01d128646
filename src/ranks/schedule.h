/* Which configuration is measured next, and on which rank. A pure data structure: no clock, no
 * MPI.
 *
 * Longest first, so that the last ones to finish are short: by the time that prediction.h expects of it, and
 * among those of which it expects the same by modelled cost. So before anything is known the modelled cost
 * alone counts. Items without a modelled cost come before all others, in the manifest's order: they may be long.
 * Split: each item once, to whoever asks. Replicate: each item once for each rank.
 *
 * Split, with ranks of unequal speed: a slow rank gets no item over which all others would have to wait for it
 * at the end. What is measured is the same in any case. */
#ifndef ROOFSWEEP_SCHEDULE_H
#define ROOFSWEEP_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "manifest/plan.h"

struct schedule;

/* The plan is not kept. NULL without memory. */
struct schedule *schedule_create(const struct plan *plan, int ranks, bool replicate);
void schedule_destroy(struct schedule *schedule); /* takes NULL */

/* The item took so long on this rank, s; `earlier`: in a run before this one. Does not mark it as done. */
void schedule_learn(struct schedule *schedule, int rank, size_t item, double seconds, bool earlier);

/* The item (of this rank, with replicate) is done: it will not be handed out, or not again. */
void schedule_done(struct schedule *schedule, int rank, size_t item);

bool schedule_is_done(const struct schedule *schedule, int rank, size_t item);

/* Whether an item may be handed out now. */
typedef bool schedule_filter(const void *context, size_t item);
/* The first item that `may` allows; NULL allows all. False if there is nothing to hand out to this rank
 * now. Nothing is kept from a rank while no faster one has an item. */
bool schedule_next(struct schedule *schedule, int rank, schedule_filter *may, const void *context,
                   size_t *item);

/* The rank gives the item back: it is handed out again. Nothing happens if the rank does not have it. */
void schedule_return(struct schedule *schedule, int rank, size_t item);

/* What this rank was given and has not done goes back, because the rank is lost. With replicate,
 * what was still to come for this rank is given up. */
void schedule_lose(struct schedule *schedule, int rank);

size_t schedule_total(const struct schedule *schedule);     /* done, given out and to come */
size_t schedule_remaining(const struct schedule *schedule); /* not done */

#endif
