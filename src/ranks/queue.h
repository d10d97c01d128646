/* Items of a plan that wait, are in flight at a rank, or are done. Pure data: no clock, no MPI.
 *
 * Order: longest modelled cost first, so that the last items are short. Items without a modelled
 * cost, which may be long, and items that share a process precede all others, in the manifest's
 * order. Split gives each item to one rank, replicate to every rank.
 *
 * In each further round a rank measures its items of the first round again, in a different order.
 * The order depends only on these items, the round and the seed. It is a row of a Williams design:
 * from the second round on, each round gives an item a new predecessor. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "manifest/plan.h"

struct queue;

/* Does not keep a pointer to the plan. Round 1 begins. NULL: no memory. */
struct queue *queue_create(const struct plan *plan, int ranks, bool replicate, int rounds);
void queue_destroy(struct queue *queue); /* takes NULL */

/* Marks a round of an item as done; with replicate, for this rank only. The rank of round 1 owns
 * the item; -1: no rank has its device. Ignores rounds beyond the last one. */
void queue_done(struct queue *queue, int rank, size_t item, int round);
/* Gives up all rounds of an item that are not done. Returns their number. */
size_t queue_drop(struct queue *queue, int rank, size_t item);

bool queue_is_done(const struct queue *queue, int rank, size_t item, int round);

int queue_round(const struct queue *queue); /* from 1 */
/* Begins the next round, if any, once this round is done. `skip`: begins it now; waiting rows are
 * left for another run. */
bool queue_next_round(struct queue *queue, uint64_t seed, bool skip);

/* True if the item may leave the queue now. */
typedef bool queue_filter(const void *context, size_t item);
/* Takes the first waiting item that `may` accepts (NULL: any) into flight at this rank. False:
 * none. */
bool queue_next(struct queue *queue, int rank, queue_filter *may, const void *context,
                size_t *item);

/* Returns an item in flight at this rank to the queue; else does nothing. */
void queue_return(struct queue *queue, int rank, size_t item);

/* Returns all items in flight at a lost rank to the queue, and gives up further rounds of the
 * rank's rows. With replicate, gives up the rank's items. Returns the number of rounds that were
 * given up. */
size_t queue_rank_lost(struct queue *queue, int rank);

/* Number of rounds of all items that were not given up; number of these that are not done. */
size_t queue_total(const struct queue *queue);
size_t queue_left(const struct queue *queue);
