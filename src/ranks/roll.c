#include "ranks/roll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { HOST = 128, TAG_HERE = 0, TAG_GO = 1 };

static const double answer_patience = 10;           /* s, of ranks that were here a moment ago */
static const double later_share = 1.25, later = 10; /* of all but rank 0, s: it speaks first */

/* On rank 0 there is one host and one request for each rank, elsewhere those of rank 0 alone. */
struct roll {
    MPI_Comm comm;
    int rank, others;
    char own[HOST];
    char (*hosts)[HOST]; /* "": not heard of yet */
    MPI_Request *requests;
};

struct roll *roll_create(MPI_Comm comm)
{
    struct roll *roll = calloc(1, sizeof *roll);
    int size;
    if (!roll)
        return NULL;
    MPI_Comm_dup(comm, &roll->comm);
    MPI_Comm_rank(comm, &roll->rank);
    MPI_Comm_size(comm, &size);
    roll->others = roll->rank == 0 ? size - 1 : 1;
    roll->hosts = calloc((size_t)roll->others + 1, sizeof *roll->hosts);
    roll->requests = calloc((size_t)roll->others + 1, sizeof(MPI_Request));
    if (gethostname(roll->own, sizeof roll->own - 1) != 0)
        roll->own[0] = '\0';
    if (roll->hosts && roll->requests)
        return roll;
    roll_destroy(roll);
    return NULL;
}

void roll_destroy(struct roll *roll)
{
    if (!roll)
        return;
    MPI_Comm_free(&roll->comm);
    free(roll->hosts);
    free(roll->requests);
    free(roll);
}

/* The rank behind a request. */
static int other(const struct roll *roll, int i)
{
    return roll->rank == 0 ? i + 1 : 0;
}

static void ask_others(struct roll *roll, int tag)
{
    for (int i = 0; i < roll->others; ++i)
        MPI_Irecv(roll->hosts[i], HOST, MPI_CHAR, other(roll, i), tag, roll->comm,
                  &roll->requests[i]);
}

/* So few bytes are on their way at once: this does not wait for the receiver. */
static void tell_others(const struct roll *roll, int tag)
{
    for (int i = 0; i < roll->others; ++i)
        MPI_Send(roll->own, HOST, MPI_CHAR, other(roll, i), tag, roll->comm);
}

static bool may_wait(const struct roll_patience *patience, double start, double *signalled)
{
    double now = clock_monotonic();
    if (patience->signal && *patience->signal && *signalled <= 0)
        *signalled = now;
    return (patience->seconds <= 0 || now - start < patience->seconds) &&
           (patience->after_signal <= 0 || *signalled <= 0 ||
            now - *signalled < patience->after_signal);
}

static bool wait_for_others(struct roll *roll, const struct roll_patience *patience)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    double start = clock_monotonic(), signalled = 0;
    int done = 0;
    MPI_Testall(roll->others, roll->requests, &done, MPI_STATUSES_IGNORE);
    while (!done) {
        if (!may_wait(patience, start, &signalled))
            return false;
        nanosleep(&nap, NULL);
        MPI_Testall(roll->others, roll->requests, &done, MPI_STATUSES_IGNORE);
    }
    return true;
}

static void name_absent(struct roll *roll, char absent[ROLL_TEXT])
{
    size_t used = 0;
    absent[0] = '\0';
    for (int i = 0; i < roll->others; ++i) {
        int here = 0;
        if (roll->requests[i] != MPI_REQUEST_NULL)
            MPI_Test(&roll->requests[i], &here, MPI_STATUS_IGNORE);
        else
            here = 1;
        if (!here && used < ROLL_TEXT)
            used += (size_t)snprintf(
                absent + used, ROLL_TEXT - used, "%srank %d on %s", used ? ", " : "",
                other(roll, i), roll->hosts[i][0] ? roll->hosts[i] : "a host not heard of yet");
    }
}

static bool meet(struct roll *roll, const struct roll_patience *patience, char absent[ROLL_TEXT])
{
    if (roll->rank != 0)
        tell_others(roll, TAG_HERE);
    ask_others(roll, roll->rank == 0 ? TAG_HERE : TAG_GO);
    if (!wait_for_others(roll, patience)) {
        name_absent(roll, absent);
        return false;
    }
    if (roll->rank == 0)
        tell_others(roll, TAG_GO);
    return true;
}

static double longer(double seconds)
{
    return seconds > 0 ? later_share * seconds + later : 0;
}

bool roll_call(struct roll *roll, const struct roll_patience *patience, char absent[ROLL_TEXT])
{
    struct roll_patience first = *patience, second = {.seconds = answer_patience};
    if (roll->rank != 0) {
        first.seconds = longer(first.seconds);
        first.after_signal = longer(first.after_signal);
        second.seconds = longer(second.seconds);
    }
    return meet(roll, &first, absent) && meet(roll, &second, absent);
}
