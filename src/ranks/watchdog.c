#include "ranks/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* MPI_Abort asks the launcher, which may be what hangs. */
enum { ABORT_SECONDS = 5 };

struct watchdog {
    struct watchdog_settings settings;
    struct timespec deadline; /* CLOCK_MONOTONIC */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    bool ended; /* under the mutex */
};

static void *abort_job(void *context)
{
    const struct watchdog_settings *settings = context;
    MPI_Abort(settings->comm, settings->exit_code);
    return NULL;
}

static _Noreturn void bite(struct watchdog_settings *settings)
{
    pthread_t aborting;
    log_print(settings->log, LOG_WARNING,
              "%s: MPI does not come back within %g s, a rank has stopped; the job ends",
              settings->what, settings->seconds);
    if (settings->comm != MPI_COMM_NULL &&
        pthread_create(&aborting, NULL, abort_job, settings) == 0)
        sleep(ABORT_SECONDS);
    _exit(settings->exit_code);
}

static void *watch(void *context)
{
    struct watchdog *watchdog = context;
    int waited = 0;
    pthread_mutex_lock(&watchdog->mutex);
    while (!watchdog->ended && waited != ETIMEDOUT)
        waited =
            pthread_cond_timedwait(&watchdog->condition, &watchdog->mutex, &watchdog->deadline);
    bool ended = watchdog->ended;
    pthread_mutex_unlock(&watchdog->mutex);
    if (!ended)
        bite(&watchdog->settings);
    return NULL;
}

static void set_deadline(struct watchdog *watchdog)
{
    struct timespec *deadline = &watchdog->deadline;
    double seconds = watchdog->settings.seconds;
    clock_gettime(CLOCK_MONOTONIC, deadline);
    deadline->tv_sec += (time_t)seconds;
    deadline->tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    deadline->tv_sec += deadline->tv_nsec / 1000000000;
    deadline->tv_nsec %= 1000000000;
}

/* The signals that end a sweep must interrupt the thread that waits, not this one. */
static bool start_thread(struct watchdog *watchdog)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&watchdog->thread, NULL, watch, watchdog) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

struct watchdog *watchdog_begin(const struct watchdog_settings *settings)
{
    pthread_condattr_t attributes;
    struct watchdog *watchdog = calloc(1, sizeof *watchdog);
    if (!watchdog)
        return NULL;
    watchdog->settings = *settings;
    set_deadline(watchdog);
    pthread_mutex_init(&watchdog->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watchdog->condition, &attributes);
    pthread_condattr_destroy(&attributes);
    if (start_thread(watchdog))
        return watchdog;
    free(watchdog);
    return NULL;
}

void watchdog_end(struct watchdog *watchdog)
{
    if (!watchdog)
        return;
    pthread_mutex_lock(&watchdog->mutex);
    watchdog->ended = true;
    pthread_cond_signal(&watchdog->condition);
    pthread_mutex_unlock(&watchdog->mutex);
    pthread_join(watchdog->thread, NULL);
    pthread_cond_destroy(&watchdog->condition);
    pthread_mutex_destroy(&watchdog->mutex);
    free(watchdog);
}
