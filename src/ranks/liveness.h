/* Liveness of the ranks of a job, and agreements among them.
 *
 * A collective call of MPI waits for a stopped rank for ever and cannot name it. Therefore all
 * ranks meet before such calls in a barrier with a time limit, and a guard watches each call. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/log.h"

/* Sleeps until the requests complete. False: time limit. */
bool liveness_wait(MPI_Request *requests, int count, const struct wait_limit *limit);

/* ---- barrier ---- */

struct liveness;

/* Collective, without a time limit. NULL: no memory. */
struct liveness *liveness_create(MPI_Comm comm);
/* Collective. Takes NULL. Not allowed after a failed barrier, because MPI still writes to the
 * memory. */
void liveness_destroy(struct liveness *liveness);

/* Collective. True: all ranks are here. False after the time limit; *absent lists the missing
 * ranks: "rank 3 on node7, rank 5 on node8". Only rank 0 knows the missing ranks; other ranks list
 * rank 0. Their limit should be longer than rank 0's, unless they wait for work of rank 0. */
enum { LIVENESS_TEXT = 800 };
bool liveness_barrier(struct liveness *liveness, const struct wait_limit *limit,
                      char absent[LIVENESS_TEXT]);

/* Host of rank 0, known to other ranks after the first barrier. */
const char *liveness_host_of_rank_0(const struct liveness *liveness);

/* ---- guard on a call of MPI ---- */

struct guard;

struct guard_settings {
    MPI_Comm comm; /* communicator to abort; MPI_COMM_NULL: before MPI_Init */
    const struct log *log;
    int seconds;
    int exit_code;
    const char *what; /* name of the call, for people */
};

/* Starts a thread that watches until guard_end. After `seconds`, or after a minute if a rank on
 * this host is stopped, the thread logs, names the stopped rank, and calls MPI_Abort. If MPI_Abort
 * hangs, it ends the process. Copies the settings. NULL: memory, descriptor or thread is missing,
 * and nothing is guarded. */
struct guard *guard_begin(const struct guard_settings *settings);
void guard_end(struct guard *guard); /* takes NULL */

/* ---- memory ---- */

/* Returns `memory`. If the pointer is NULL, prints that there is no memory for `what`, and ends the
 * job with status 1. Use this for memory without which this rank could not report an error to other
 * ranks. */
void *memory_require(MPI_Comm comm, void *memory, const char *what)
    __attribute__((returns_nonnull));

/* ---- agreements ---- */

/* Collective. Returns, on all ranks, the status of the lowest rank with an error. *error gets the
 * text of that rank, prefixed with the rank unless it is 0. STATUS_OK: no rank has an error. */
enum status liveness_agree(MPI_Comm comm, enum status own, struct error *error);

/* Collective. Returns rank 0's text; the caller frees it. */
char *liveness_share_text(MPI_Comm comm, const char *text);
