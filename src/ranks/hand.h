/* What one rank has in hand: the configurations that it was given and that have no record yet. One at most
 * is being measured; the others are timed, and wait until their counters are read together. Plain data for
 * the coordinator, which alone changes it. */
#ifndef ROOFSWEEP_HAND_H
#define ROOFSWEEP_HAND_H

#include <stdbool.h>
#include <stddef.h>

#include "manifest/plan.h"

struct hand_item {
    size_t item; /* of the plan */
    bool timed;
    double seconds; /* that it took until it was timed */
};

struct hand {
    struct hand_item *items; /* owned, in the order in which they were given */
    size_t count, capacity;
};

void hand_clear(struct hand *hand);

/* False without memory. */
bool hand_give(struct hand *hand, size_t item);
/* The item is no longer in hand. */
void hand_take(struct hand *hand, size_t item);

/* NULL: it is not in hand. */
struct hand_item *hand_find(const struct hand *hand, size_t item);
/* By the configuration's canonical text. */
struct hand_item *hand_find_config(const struct hand *hand, const struct plan *plan,
                                   const char *configuration);
/* What is being measured; NULL: all is timed, or there is nothing. */
const struct hand_item *hand_measured(const struct hand *hand);
/* s, of what is timed and has no record: so much is lost with the worker. */
double hand_stake(const struct hand *hand);

#endif
