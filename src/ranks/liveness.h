/* Whether the ranks of a job still answer, and what they agree on.
 *
 * A collective call of MPI waits for a stopped rank without end, and cannot say for whom. So all
 * ranks meet before such calls, asleep and within bounds, and a guard stands over each call. */
#pragma once

#include <mpi.h>
#include <signal.h>
#include <stdbool.h>

#include "base/log.h"

/* How long to wait for other ranks. */
struct wait_limit {
    double seconds;      /* 0: for ever */
    double after_signal; /* s, from the moment that *signal is seen set; 0: the same as without */
    const volatile sig_atomic_t *signal; /* may be NULL */
};

/* Waits, asleep, until these calls of MPI are complete. False: they are not, after that time. */
bool liveness_wait(MPI_Request *requests, int count, const struct wait_limit *limit);

/* ---- all ranks are here ---- */

struct liveness;

/* Collective, and not bounded. NULL without memory. */
struct liveness *liveness_create(MPI_Comm comm);
/* Collective. Takes NULL. Not after a meeting that has failed: MPI still writes to it. */
void liveness_destroy(struct liveness *liveness);

/* Collective. True: all ranks are here. False: after that time they are not; *absent says who, for
 * people: "rank 3 on node7, rank 5 on node8". Rank 0 knows that. The others wait for rank 0 a
 * quarter and 10 s longer, and then name that one. */
enum { LIVENESS_TEXT = 800 };
bool liveness_barrier(struct liveness *liveness, const struct wait_limit *limit,
                      char absent[LIVENESS_TEXT]);

/* On all ranks but rank 0: where that is, once it was met. */
const char *liveness_host_of_rank_0(const struct liveness *liveness);

/* ---- a bound on a call of MPI ---- */

struct guard;

struct guard_settings {
    MPI_Comm comm; /* aborted; MPI_COMM_NULL: MPI is not there yet */
    const struct log *log;
    int seconds;
    int exit_code;
    const char *what; /* for people: what does not come back */
};

/* A thread of its own. Unless guard_end comes in time, it says so and ends the job by MPI_Abort;
 * and the process, if that does not either. A rank of this host that is seen stopped is named, and
 * is waited for no longer than a minute. The settings are copied, what they point to is not.
 * NULL without memory, descriptor or thread: then there is no bound. */
struct guard *guard_begin(const struct guard_settings *settings);
void guard_end(struct guard *guard); /* takes NULL */

/* ---- what they agree on ---- */

/* Collective. Returns the same status on every rank: that of the lowest rank whose `own` is not
 * STATUS_OK, whose error text rank 0 then has in *error, with the rank in front if it is not rank
 * 0. */
enum status liveness_agree(MPI_Comm comm, enum status own, struct error *error);

/* Collective. Gives every rank rank 0's text; the caller frees it. */
char *liveness_share_text(MPI_Comm comm, const char *text);
