/* The ranks of a node, which come together as long as all of them come.
 *
 * They sleep while they wait: MPI's own waiting would take cores from the device that is being measured. One
 * that does not come is waited for no longer than the patience. Then the gathering is abandoned: a
 * collective call is still under way, and no other may follow. */
#ifndef ROOFSWEEP_GATHERING_H
#define ROOFSWEEP_GATHERING_H

#include <mpi.h>
#include <signal.h>
#include <stdbool.h>

#include "base/log.h"
#include "ranks/watchdog.h"

struct gathering {
    /* The caller's. */
    const volatile sig_atomic_t *interrupted;
    double patience, stop_patience; /* s, for another rank: while they work, and after a signal */
    const struct log *log;
    const char *host;

    MPI_Comm comm;
    int rank, count;
    bool leaving;   /* some rank was interrupted, or is waited for no longer */
    bool abandoned; /* the latter */
    /* {latest moment, interrupted}, of this rank and of all. On the heap: MPI writes to an abandoned call when
     * the last rank comes after all. */
    double *own, *all;
};

/* Collective over comm. False without memory. */
bool gathering_open(struct gathering *gathering, MPI_Comm comm,
                    const struct watchdog_settings *guard);
/* False: it was abandoned. Then what MPI may still write to must stay. */
bool gathering_close(struct gathering *gathering, const struct watchdog_settings *guard);

/* Until a call of all ranks is through. False: somebody does not come, and the call is abandoned. */
bool gathering_await(struct gathering *gathering, MPI_Request request);

/* Returns once all ranks are here, with the latest of their moments. */
double gathering_wait(struct gathering *gathering, double moment);

#endif
