/* The ranks of a job, and which of them answer. A call waits for all, within bounds, and names who is missing:
 * a collective call of MPI would wait for a stopped rank without end, and could not say for whom.
 *
 * Every rank tells rank 0 that it is here, and rank 0 tells all to go on. Some may have waited for long by then,
 * and stopped meanwhile; so all are asked once more, and have 10 s for that. */
#ifndef ROOFSWEEP_ROLL_H
#define ROOFSWEEP_ROLL_H

#include <mpi.h>
#include <signal.h>
#include <stdbool.h>

struct roll;

/* Collective, and not bounded. NULL without memory. */
struct roll *roll_create(MPI_Comm comm);
/* Collective. Takes NULL. Not after a call that has failed: MPI still writes to it. */
void roll_destroy(struct roll *roll);

struct roll_patience {
    double seconds;      /* 0: for ever */
    double after_signal; /* s, from the moment that *signal is seen set; 0: the same as without */
    const volatile sig_atomic_t *signal;
};

/* Collective, asleep. True: all ranks are here. False: after that time they are not; *absent says who, for
 * people: "rank 3 on node7, rank 5 on node8". Rank 0 knows that; the others wait for rank 0 a quarter and 10 s
 * longer, and then name that one. */
enum { ROLL_TEXT = 800 };
bool roll_call(struct roll *roll, const struct roll_patience *patience, char absent[ROLL_TEXT]);

#endif
