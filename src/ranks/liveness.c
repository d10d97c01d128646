#include "ranks/liveness.h"

#include <dirent.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

bool liveness_wait(MPI_Request *requests, int count, const struct wait_limit *limit)
{
    const long longest = 500000; /* ns */
    struct timespec pause = {.tv_nsec = 100000};
    struct countdown time = countdown_start(limit->seconds > 0 ? limit->seconds : INFINITY);
    int done = 0;
    for (MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE); !done;
         MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE)) {
        if (wait_over(&time, limit))
            return false;
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec < longest / 2 ? 2 * pause.tv_nsec : longest;
    }
    return true;
}

/* ---- barrier ---- */

enum { HOST = 128, TAG_HERE = 0, TAG_GO = 1 };

/* s; limits of the second round. Ranks other than 0 wait longer, so that rank 0 reports first. */
static const double answer_timeout = 10, later_answer_timeout = 22.5;

/* Rank 0 has a host and a request for each other rank; other ranks have a host and a request for
 * rank 0 only. */
struct liveness {
    MPI_Comm comm;
    int rank, others;
    char own[HOST];
    char (*hosts)[HOST]; /* "": unknown yet */
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

static int other(const struct liveness *liveness, int i)
{
    return liveness->rank == 0 ? i + 1 : 0;
}

/* Messages are short enough for MPI to buffer, so sending does not wait. */
static void send_others(const struct liveness *liveness, int tag)
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
        MPI_Test(&liveness->requests[i], &here, MPI_STATUS_IGNORE); /* a null request is done */
        if (!here && used < LIVENESS_TEXT)
            used += (size_t)snprintf(absent + used, LIVENESS_TEXT - used, "%srank %d on %s",
                                     used ? ", " : "", other(liveness, i),
                                     host[0] ? host : "a host not heard of yet");
    }
}

/* Every rank reports to rank 0, which then lets all ranks go on. */
static bool barrier_round(struct liveness *liveness, const struct wait_limit *limit,
                          char absent[LIVENESS_TEXT])
{
    if (liveness->rank != 0)
        send_others(liveness, TAG_HERE);
    for (int i = 0; i < liveness->others; ++i)
        MPI_Irecv(liveness->hosts[i], HOST, MPI_CHAR, other(liveness, i),
                  liveness->rank == 0 ? TAG_HERE : TAG_GO, liveness->comm, &liveness->requests[i]);
    if (!liveness_wait(liveness->requests, liveness->others, limit)) {
        name_absent(liveness, absent);
        return false;
    }
    if (liveness->rank == 0)
        send_others(liveness, TAG_GO);
    return true;
}

/* In the first round ranks may wait long and stop meanwhile, so a second, short round follows. */
bool liveness_barrier(struct liveness *liveness, const struct wait_limit *limit,
                      char absent[LIVENESS_TEXT])
{
    const struct wait_limit second = {.seconds = liveness->rank == 0 ? answer_timeout
                                                                     : later_answer_timeout};
    return barrier_round(liveness, limit, absent) && barrier_round(liveness, &second, absent);
}

const char *liveness_host_of_rank_0(const struct liveness *liveness)
{
    return liveness->hosts[0];
}

/* ---- guard on a call of MPI ---- */

/* MPI_Abort calls the launcher and may hang. */
enum { ABORT_SECONDS = 5 };

/* s. A stopped rank of this host ends the wait after stopped_timeout. */
static const double stopped_timeout = 60, stopped_interval = 10;

struct guard {
    struct guard_settings settings;
    pthread_t thread;
    int ended; /* eventfd */
};

static const char *const rank_names[] = {
    "OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "PMI_RANK=", "SLURM_PROCID="};

/* Finds a stopped process of the same launcher on this host: ": rank 1, process 4711". During a
 * call of MPI no other rank can name it. False: none. */
static bool find_stopped(char text[64])
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    char *line = NULL;
    size_t size = 0;
    text[0] = '\0';
    while (folder && !*text && (entry = readdir(folder))) {
        char path[64], state = ' ';
        int parent = 0;
        snprintf(path, sizeof path, "/proc/%.20s/stat", entry->d_name);
        FILE *file = fopen(path, "re");
        int found = file ? fscanf(file, "%*d (roofsweep) %c %d", &state, &parent) : 0;
        if (file)
            fclose(file);
        if (found != 2 || state != 'T' || parent != getppid())
            continue;
        snprintf(text, 64, ": process %.20s", entry->d_name);
        snprintf(path, sizeof path, "/proc/%.20s/environ", entry->d_name);
        file = fopen(path, "re");
        while (file && getdelim(&line, &size, '\0', file) > 0)
            for (size_t i = 0; i < sizeof rank_names / sizeof *rank_names; ++i)
                if (strncmp(line, rank_names[i], strlen(rank_names[i])) == 0)
                    snprintf(text, 64, ": rank %.10s, process %.20s", strchr(line, '=') + 1,
                             entry->d_name);
        if (file)
            fclose(file);
    }
    free(line);
    if (folder)
        closedir(folder);
    return *text;
}

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
    struct countdown time = countdown_start(settings->seconds);
    struct countdown scan = countdown_start(stopped_timeout);
    struct pollfd ended = {.fd = guard->ended, .events = POLLIN};
    char stopped[64] = "";
    pthread_t aborting;
    while (!*stopped && !countdown_over(&time)) {
        if (poll(&ended, 1, 100) > 0)
            return NULL;
        if (countdown_over(&scan) && !find_stopped(stopped))
            scan = countdown_start(stopped_interval);
    }
    if (!*stopped)
        find_stopped(stopped);
    log_print(settings->log, LOG_WARNING,
              "%s: MPI does not come back within %.0f s, a rank has stopped%s; the job ends",
              settings->what, settings->seconds - fmax(time.left, 0), stopped);
    if (settings->comm != MPI_COMM_NULL &&
        pthread_create(&aborting, NULL, abort_job, settings) == 0)
        sleep(ABORT_SECONDS);
    _exit(settings->exit_code);
}

struct guard *guard_begin(const struct guard_settings *settings)
{
    struct guard *guard = calloc(1, sizeof *guard);
    sigset_t all, before;
    if (!guard)
        return NULL;
    guard->settings = *settings;
    guard->ended = eventfd(0, EFD_CLOEXEC);
    /* Signals must interrupt the thread that calls MPI, not the guard's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = guard->ended >= 0 && pthread_create(&guard->thread, NULL, watch, guard) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started) {
        if (guard->ended >= 0)
            close(guard->ended);
        free(guard);
        return NULL;
    }
    return guard;
}

void guard_end(struct guard *guard)
{
    if (!guard)
        return;
    eventfd_write(guard->ended, 1);
    pthread_join(guard->thread, NULL);
    close(guard->ended);
    free(guard);
}

/* ---- memory ---- */

void *memory_require(MPI_Comm comm, void *memory, const char *what)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (!memory) {
        fprintf(stderr, "roofsweep: rank %d: no memory for %s; --resume goes on\n", rank, what);
        MPI_Abort(comm, 1);
        abort();
    }
    return memory;
}

/* ---- agreements ---- */

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
    return first == 0 ? (enum status)status
                      : error_prefix(error, (enum status)status, "rank %d", first);
}

char *liveness_share_text(MPI_Comm comm, const char *text)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    unsigned long long length = rank == 0 ? strlen(text) : 0;
    MPI_Bcast(&length, 1, MPI_UNSIGNED_LONG_LONG, 0, comm);
    char *copy = memory_require(comm, malloc(length + 1), "a text of rank 0");
    if (rank == 0)
        memcpy(copy, text, length);
    MPI_Bcast(copy, (int)length, MPI_CHAR, 0, comm);
    copy[length] = '\0';
    return copy;
}
