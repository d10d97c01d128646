/* Whether a rank that is free now counts what it has timed, or is given more to time first. Made for the moment,
 * from what rank 0 knows; owns nothing. Ranks that are given nothing more count in any case. */
#ifndef ROOFSWEEP_TURN_H
#define ROOFSWEEP_TURN_H

#include <stdbool.h>

#include "model/device.h"
#include "ranks/crew.h"
#include "ranks/offer.h"

struct turn {
    const struct offer *offer; /* to the rank */
    int rank;                  /* that is free */
    const struct crew *crew;
    const struct device *devices; /* of each rank */
};

/* Not before it must, because each collection costs a fixed time, and a row more costs little.
 * - It must with a full hand: as many rows as are counted together, or 10 s of timings, which would be lost with
 *   the worker.
 * - Seven eighths of either bound are enough if the rank's host has other ranks that get work, and none of them
 *   counts at the moment. A driver programs the counters of one process at a time. So ranks that began together
 *   come apart: while one counts, the others time. */
bool turn_has_come(const struct turn *turn);

#endif
