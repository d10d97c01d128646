/* Ends a process that does not come back from a call of MPI, because another rank has stopped. */
#ifndef ROOFSWEEP_WATCHDOG_H
#define ROOFSWEEP_WATCHDOG_H

#include <mpi.h>

#include "base/log.h"

struct watchdog;

struct watchdog_settings {
    MPI_Comm comm; /* aborted; MPI_COMM_NULL: MPI is not there yet */
    const struct log *log;
    double seconds;
    int exit_code;
    const char *what; /* for people: what does not come back */
};

/* A thread of its own. Unless watchdog_end comes in time, it says so and ends the job by MPI_Abort; and the
 * process, if that does not either. The settings are copied, what they point to is not. NULL if there can be no
 * thread: then nobody watches. */
struct watchdog *watchdog_begin(const struct watchdog_settings *settings);
void watchdog_end(struct watchdog *watchdog); /* takes NULL */

#endif
