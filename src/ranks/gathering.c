#include "ranks/gathering.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

bool gathering_open(struct gathering *gathering, MPI_Comm comm,
                    const struct watchdog_settings *guard)
{
    struct watchdog *watchdog = watchdog_begin(guard);
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &gathering->comm);
    watchdog_end(watchdog);
    MPI_Comm_rank(gathering->comm, &gathering->rank);
    MPI_Comm_size(gathering->comm, &gathering->count);
    gathering->own = calloc(4, sizeof *gathering->own);
    if (!gathering->own)
        return false;
    gathering->all = gathering->own + 2;
    return true;
}

bool gathering_close(struct gathering *gathering, const struct watchdog_settings *guard)
{
    if (gathering->abandoned)
        return false;
    struct watchdog *watchdog = watchdog_begin(guard);
    MPI_Comm_free(&gathering->comm);
    watchdog_end(watchdog);
    free(gathering->own);
    return true;
}

static bool may_wait(const struct gathering *gathering, double start, double *interrupted)
{
    double now = clock_monotonic();
    if (*gathering->interrupted && *interrupted <= 0.0)
        *interrupted = now;
    return now - start < gathering->patience &&
           (*interrupted <= 0.0 || now - *interrupted < gathering->stop_patience);
}

static void abandon(struct gathering *gathering)
{
    log_print(gathering->log, LOG_WARNING,
              "%s: a rank of this node does not come to the next roof; it is waited for no longer",
              gathering->host);
    gathering->leaving = gathering->abandoned = true;
}

bool gathering_await(struct gathering *gathering, MPI_Request request)
{
    const long longest = 500000; /* ns */
    struct timespec nap = {.tv_nsec = 100000};
    double start = clock_monotonic(), interrupted = 0.0;
    int done = 0;
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
         MPI_Test(&request, &done, MPI_STATUS_IGNORE)) {
        if (!may_wait(gathering, start, &interrupted)) {
            abandon(gathering);
            return false;
        }
        nanosleep(&nap, NULL);
        nap.tv_nsec = nap.tv_nsec < longest / 2 ? 2 * nap.tv_nsec : longest;
    }
    return true;
}

double gathering_wait(struct gathering *gathering, double moment)
{
    MPI_Request request;
    gathering->own[0] = moment;
    gathering->own[1] = *gathering->interrupted != 0;
    MPI_Iallreduce(gathering->own, gathering->all, 2, MPI_DOUBLE, MPI_MAX, gathering->comm,
                   &request);
    if (!gathering_await(gathering, request))
        return moment;
    gathering->leaving = gathering->all[1] > 0.0;
    return gathering->all[0];
}
