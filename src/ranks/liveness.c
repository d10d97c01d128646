#include "ranks/liveness.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

bool liveness_wait(MPI_Request *requests, int count, const struct patience *patience)
{
    const long longest = 500000; /* ns */
    struct timespec nap = {.tv_nsec = 100000};
    double start = clock_monotonic(), signalled = 0;
    int done = 0;
    for (MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE); !done;
         MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE)) {
        double now = clock_monotonic();
        if (patience->signal && *patience->signal && signalled <= 0)
            signalled = now;
        if ((patience->seconds > 0 && now - start >= patience->seconds) ||
            (patience->after_signal > 0 && signalled > 0 &&
             now - signalled >= patience->after_signal))
            return false;
        nanosleep(&nap, NULL);
        nap.tv_nsec = nap.tv_nsec < longest / 2 ? 2 * nap.tv_nsec : longest;
    }
    return true;
}

/* ---- all ranks are here ---- */

enum { HOST = 128, TAG_HERE = 0, TAG_GO = 1 };

static const double answer_patience = 10;           /* s, of ranks that were here a moment ago */
static const double later_share = 1.25, later = 10; /* of all but rank 0, s: it speaks first */

/* On rank 0 there is one host and one request for each rank, elsewhere those of rank 0 alone. */
struct liveness {
    MPI_Comm comm;
    int rank, others;
    char own[HOST];
    char (*hosts)[HOST]; /* "": not heard of yet */
    MPI_Request *requests;
};

struct liveness *liveness_create(MPI_Comm comm)
{
    struct liveness *liveness = calloc(1, sizeof *liveness);
    int size;
    if (!liveness)
        return NULL;
    MPI_Comm_dup(comm, &liveness->comm);
    MPI_Comm_rank(comm, &liveness->rank);
    MPI_Comm_size(comm, &size);
    liveness->others = liveness->rank == 0 ? size - 1 : 1;
    liveness->hosts = calloc((size_t)liveness->others + 1, sizeof *liveness->hosts);
    liveness->requests = calloc((size_t)liveness->others + 1, sizeof(MPI_Request));
    if (gethostname(liveness->own, sizeof liveness->own - 1) != 0)
        liveness->own[0] = '\0';
    if (liveness->hosts && liveness->requests)
        return liveness;
    liveness_destroy(liveness);
    return NULL;
}

void liveness_destroy(struct liveness *liveness)
{
    if (!liveness)
        return;
    MPI_Comm_free(&liveness->comm);
    free(liveness->hosts);
    free(liveness->requests);
    free(liveness);
}

/* The rank of a request. */
static int other(const struct liveness *liveness, int i)
{
    return liveness->rank == 0 ? i + 1 : 0;
}

/* So few bytes are on their way at once: this does not wait for the receiver. */
static void tell_others(const struct liveness *liveness, int tag)
{
    for (int i = 0; i < liveness->others; ++i)
        MPI_Send(liveness->own, HOST, MPI_CHAR, other(liveness, i), tag, liveness->comm);
}

static void name_absent(struct liveness *liveness, char absent[LIVENESS_TEXT])
{
    size_t used = 0;
    absent[0] = '\0';
    for (int i = 0; i < liveness->others; ++i) {
        const char *host = liveness->hosts[i];
        int here = 0;
        MPI_Test(&liveness->requests[i], &here, MPI_STATUS_IGNORE); /* of no request: it is here */
        if (!here && used < LIVENESS_TEXT)
            used += (size_t)snprintf(absent + used, LIVENESS_TEXT - used, "%srank %d on %s",
                                     used ? ", " : "", other(liveness, i),
                                     host[0] ? host : "a host not heard of yet");
    }
}

/* Every rank tells rank 0 that it is here, and rank 0 tells all to go on. */
static bool meet(struct liveness *liveness, const struct patience *patience,
                 char absent[LIVENESS_TEXT])
{
    if (liveness->rank != 0)
        tell_others(liveness, TAG_HERE);
    for (int i = 0; i < liveness->others; ++i)
        MPI_Irecv(liveness->hosts[i], HOST, MPI_CHAR, other(liveness, i),
                  liveness->rank == 0 ? TAG_HERE : TAG_GO, liveness->comm, &liveness->requests[i]);
    if (!liveness_wait(liveness->requests, liveness->others, patience)) {
        name_absent(liveness, absent);
        return false;
    }
    if (liveness->rank == 0)
        tell_others(liveness, TAG_GO);
    return true;
}

static double longer(double seconds)
{
    return seconds > 0 ? later_share * seconds + later : 0;
}

/* Some ranks may have waited for long after the first round, and stopped meanwhile. So all are
 * asked once more. */
bool liveness_meet(struct liveness *liveness, const struct patience *patience,
                   char absent[LIVENESS_TEXT])
{
    struct patience first = *patience, second = {.seconds = answer_patience};
    if (liveness->rank != 0) {
        first.seconds = longer(first.seconds);
        first.after_signal = longer(first.after_signal);
        second.seconds = longer(second.seconds);
    }
    return meet(liveness, &first, absent) && meet(liveness, &second, absent);
}

/* ---- a bound on a call of MPI ---- */

/* MPI_Abort asks the launcher, which may be what hangs. */
enum { ABORT_SECONDS = 5 };

struct guard {
    struct guard_settings settings;
    struct timespec deadline; /* CLOCK_MONOTONIC */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    bool ended; /* under the mutex */
};

static void *abort_job(void *context)
{
    const struct guard_settings *settings = context;
    MPI_Abort(settings->comm, settings->exit_code);
    return NULL;
}

static void *watch(void *context)
{
    struct guard *guard = context;
    struct guard_settings *settings = &guard->settings;
    pthread_t aborting;
    int waited = 0;
    pthread_mutex_lock(&guard->mutex);
    while (!guard->ended && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&guard->condition, &guard->mutex, &guard->deadline);
    bool ended = guard->ended;
    pthread_mutex_unlock(&guard->mutex);
    if (ended)
        return NULL;
    log_print(settings->log, LOG_WARNING,
              "%s: MPI does not come back within %d s, a rank has stopped; the job ends",
              settings->what, settings->seconds);
    if (settings->comm != MPI_COMM_NULL &&
        pthread_create(&aborting, NULL, abort_job, settings) == 0)
        sleep(ABORT_SECONDS);
    _exit(settings->exit_code);
}

struct guard *guard_begin(const struct guard_settings *settings)
{
    struct guard *guard = calloc(1, sizeof *guard);
    pthread_condattr_t attributes;
    sigset_t all, before;
    if (!guard)
        return NULL;
    guard->settings = *settings;
    clock_gettime(CLOCK_MONOTONIC, &guard->deadline);
    guard->deadline.tv_sec += settings->seconds;
    pthread_mutex_init(&guard->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&guard->condition, &attributes);
    pthread_condattr_destroy(&attributes);
    /* The signals that end a sweep must interrupt the thread that waits, not this one. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(&guard->thread, NULL, watch, guard);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure) {
        free(guard);
        return NULL;
    }
    return guard;
}

void guard_end(struct guard *guard)
{
    if (!guard)
        return;
    pthread_mutex_lock(&guard->mutex);
    guard->ended = true;
    pthread_cond_signal(&guard->condition);
    pthread_mutex_unlock(&guard->mutex);
    pthread_join(guard->thread, NULL);
    pthread_cond_destroy(&guard->condition);
    pthread_mutex_destroy(&guard->mutex);
    free(guard);
}

/* ---- what they agree on ---- */

enum status liveness_agree(MPI_Comm comm, enum status own, struct error *error)
{
    int rank, size, first;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int candidate = own == STATUS_OK ? size : rank;
    MPI_Allreduce(&candidate, &first, 1, MPI_INT, MPI_MIN, comm);
    if (first == size)
        return STATUS_OK;
    int status = (int)own;
    MPI_Bcast(&status, 1, MPI_INT, first, comm);
    struct error text = *error;
    MPI_Bcast(text.text, sizeof text.text, MPI_CHAR, first, comm);
    *error = text;
    if (first != 0)
        error_prefix(error, "rank %d", first);
    return (enum status)status;
}

char *liveness_share_text(MPI_Comm comm, const char *text)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    unsigned long long length = rank == 0 ? strlen(text) : 0;
    MPI_Bcast(&length, 1, MPI_UNSIGNED_LONG_LONG, 0, comm);
    char *copy = malloc(length + 1);
    if (!copy)
        MPI_Abort(comm, 1);
    if (rank == 0)
        memcpy(copy, text, length);
    MPI_Bcast(copy, (int)length, MPI_CHAR, 0, comm);
    copy[length] = '\0';
    return copy;
}
