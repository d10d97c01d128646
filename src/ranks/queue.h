/* The items of a plan and their states: which wait, which are in flight and where, which are done.
 * A pure data structure: no clock, no MPI.
 *
 * Longest first by modelled cost, so that the last ones to finish are short. Items without a
 * modelled cost come before all others, in the manifest's order: they may be long. So do those that
 * share a process, which goes on with the next of them. Split: each item
 * once, to whoever asks. Replicate: each item once for each rank. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "manifest/plan.h"

struct queue;

/* The plan is not kept. NULL without memory. */
struct queue *queue_create(const struct plan *plan, int ranks, bool replicate);
void queue_destroy(struct queue *queue); /* takes NULL */

/* The item (of this rank, with replicate) is done: it will not be handed out, or not again. */
void queue_done(struct queue *queue, int rank, size_t item);

bool queue_is_done(const struct queue *queue, int rank, size_t item);

/* Whether an item may be handed out now. */
typedef bool queue_filter(const void *context, size_t item);
/* The first item that waits and that `may` allows; NULL allows all. It is then in flight at this
 * rank. False if there is none. */
bool queue_next(struct queue *queue, int rank, queue_filter *may, const void *context,
                size_t *item);

/* The rank gives the item back: it waits again. Nothing happens if it is not in flight there. */
void queue_return(struct queue *queue, int rank, size_t item);

/* What is in flight at this rank waits again, because the rank is lost. With replicate, what was
 * still to come for this rank is given up. */
void queue_rank_lost(struct queue *queue, int rank);

size_t queue_total(const struct queue *queue); /* done, in flight and waiting */
size_t queue_left(const struct queue *queue);  /* not done */
