/* One rank's shift: its worker is heard, and letters come and go, until this rank is told to stop and, on
 * rank 0, until all others have said their last word. */
#ifndef ROOFSWEEP_SHIFT_H
#define ROOFSWEEP_SHIFT_H

#include <mpi.h>

#include "base/log.h"
#include "ranks/coordinator.h"
#include "ranks/executor.h"
#include "ranks/mailbox.h"

/* All of it is the caller's, but `told`. */
struct shift {
    MPI_Comm comm;
    int rank, ranks;
    const struct log *log;
    struct mailbox *mailbox;
    struct executor *executor;
    struct coordinator *coordinator; /* rank 0 has one; NULL: another rank */
    double stop_patience;            /* s, until a rank has said its last word */
    int exit_code;                   /* of the job if rank 0 does not answer to a signal */
    double told; /* s, CLOCK_MONOTONIC: when rank 0 was told of a signal; 0: it was not */
};

/* Takes note of the signal that was seen (signals.h), and tells rank 0. */
void shift_interrupt(struct shift *shift);

/* The executor has been started. Ends the job if rank 0 does not answer to a signal. */
void shift_run(struct shift *shift);

#endif
