/* Items of a plan that wait, are in flight at a rank, or are done. Pure data: no clock, no MPI.
 *
 * Order: longest modelled cost first, so that the last items are short. Items without a modelled
 * cost, which may be long, and items that share a process precede all others, in the manifest's
 * order. Split gives each item to one rank, replicate to every rank. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "manifest/plan.h"

struct queue;

/* Does not keep the plan. NULL: no memory. */
struct queue *queue_create(const struct plan *plan, int ranks, bool replicate);
void queue_destroy(struct queue *queue); /* takes NULL */

/* Marks an item as done; with replicate, for this rank only. */
void queue_done(struct queue *queue, int rank, size_t item);

bool queue_is_done(const struct queue *queue, int rank, size_t item);

/* True if the item may leave the queue now. */
typedef bool queue_filter(const void *context, size_t item);
/* Takes the first waiting item that `may` accepts (NULL: any) into flight at this rank. False:
 * none. */
bool queue_next(struct queue *queue, int rank, queue_filter *may, const void *context,
                size_t *item);

/* Returns an item in flight at this rank to the queue; else does nothing. */
void queue_return(struct queue *queue, int rank, size_t item);

/* Returns all items in flight at a lost rank to the queue. With replicate gives up the rank's
 * items. */
void queue_rank_lost(struct queue *queue, int rank);

size_t queue_total(const struct queue *queue); /* done, in flight and waiting */
size_t queue_left(const struct queue *queue);  /* not done */
