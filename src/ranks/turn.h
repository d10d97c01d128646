/* Whether a rank that is free now counts what it has timed, or is given more to time first. Made for the moment,
 * from what rank 0 knows; owns nothing. Ranks that are given nothing more count in any case. */
#ifndef ROOFSWEEP_TURN_H
#define ROOFSWEEP_TURN_H

#include <stdbool.h>

#include "model/device.h"
#include "ranks/crew.h"
#include "ranks/offer.h"
#include "ranks/schedule.h"

struct turn {
    const struct offer *offer; /* to the rank */
    int rank;                  /* that is free */
    const struct crew *crew;
    const struct device *devices; /* of each rank */
    const struct schedule *schedule;
};

/* At once: as many rows as are counted together, or 10 s of timings, which would be lost with the worker.
 *
 * Earlier, if no other rank of the host counts at the moment, because a driver programs the counters of one
 * process at a time: ranks of a host that count at once wait for each other, while ranks that measure go on.
 * - Where the host has other ranks: seven eighths of either bound. So ranks that began together come apart.
 * - Where others share the host or what is to come: as much as is still to come for this rank, as the schedule
 *   predicts from rows of this run. So batches shrink, and little is left to count when the rows run out.
 *   It is 2 s of timings at least. To begin a collection takes about 0.3 s, and that is to stay a small part of
 *   what it is for, whatever is predicted. */
bool turn_has_come(const struct turn *turn);

#endif
