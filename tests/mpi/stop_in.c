/* Preloaded into the ranks of a test.
 *
 * STOP_IN, STOP_RANK: rank STOP_RANK stops itself (SIGSTOP) at the first call that STOP_IN names;
 * so tests see sweeps in which a rank hangs inside MPI or just before it.
 * SLOW_RANK: rank SLOW_RANK sleeps 50 ms in each MPI_Sendrecv, and 2 us for each number sent.
 * EPOCH_SHIFT: seconds that are added to the date.
 * CLOCK_RATE: the monotonic clock runs CLOCK_RATE times as fast, so that a bound of 60 s passes in
 * seconds. With FAST_FROM the clock becomes fast at the moment that a file of this name exists. */
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Values of the environment, read before main(): threads of Open MPI call clock_gettime while
 * MPI_Init sets variables, and getenv then reads freed memory. */
static struct {
    const char *stop_in, *stop_rank, *slow_rank, *rank, *epoch_shift, *clock_rate, *fast_from;
} given;

__attribute__((constructor)) static void read_environment(void)
{
    given.stop_in = getenv("STOP_IN");
    given.stop_rank = getenv("STOP_RANK");
    given.slow_rank = getenv("SLOW_RANK");
    given.rank = getenv("OMPI_COMM_WORLD_RANK");
    given.epoch_shift = getenv("EPOCH_SHIFT");
    given.clock_rate = getenv("CLOCK_RATE");
    given.fast_from = getenv("FAST_FROM");
}

static bool is_rank(const char *chosen)
{
    return chosen && given.rank && strcmp(chosen, given.rank) == 0;
}

static void stop_in(const char *place)
{
    if (!given.stop_in || strcmp(given.stop_in, place) != 0 || !is_rank(given.stop_rank))
        return;
    given.stop_in = NULL;
    unsetenv("STOP_IN");
    raise(SIGSTOP);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*next)(clockid_t, struct timespec *);
    static double began; /* s, time at which the clock became fast; 0: it runs at its usual rate */
    const char *shift = given.epoch_shift, *file = given.fast_from, *rate = given.clock_rate;
    if (!next)
        next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = next(clock, now);
    if (clock == CLOCK_REALTIME && shift)
        now->tv_sec += atol(shift);
    if (clock == CLOCK_MONOTONIC && rate && (began > 0 || !file || access(file, F_OK) == 0)) {
        double seconds = (double)now->tv_sec + 1e-9 * (double)now->tv_nsec;
        began = began > 0 ? began : seconds;
        seconds = began + strtod(rate, NULL) * (seconds - began);
        now->tv_sec = (time_t)seconds;
        now->tv_nsec = (long)(1e9 * (seconds - (double)now->tv_sec));
    }
    return status;
}

int MPI_Init(int *argc, char ***argv)
{
    stop_in("start");
    return PMPI_Init(argc, argv);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part)
{
    stop_in("binding");
    return PMPI_Comm_split_type(comm, type, key, info, part);
}

/* The third message of a rank says that it waits for rank 0 to read the manifest. */
int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    static int sent;
    if (++sent == 3)
        stop_in("reading");
    return PMPI_Send(data, count, type, to, tag, comm);
}

int MPI_Sendrecv(const void *sent, int count, MPI_Datatype type, int to, int tag, void *received,
                 int received_count, MPI_Datatype received_type, int from, int received_tag,
                 MPI_Comm comm, MPI_Status *status)
{
    if (is_rank(given.slow_rank))
        usleep(50000 + 2 * (useconds_t)count);
    return PMPI_Sendrecv(sent, count, type, to, tag, received, received_count, received_type, from,
                         received_tag, comm, status);
}

/* Called when a result file gets its name. */
int linkat(int from, const char *name, int to, const char *target, int flags)
{
    int (*next)(int, const char *, int, const char *, int) =
        (int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat");
    if (!strstr(target, "/.roofsweep-"))
        stop_in("publishing");
    return next(from, name, to, target, flags);
}

/* Called when a rank starts a worker, to which it opens a socket pair. */
int socketpair(int domain, int type, int protocol, int descriptors[2])
{
    int (*next)(int, int, int, int[2]) =
        (int (*)(int, int, int, int[2]))dlsym(RTLD_NEXT, "socketpair");
    stop_in("opening");
    return next(domain, type, protocol, descriptors);
}

int MPI_Finalize(void)
{
    stop_in("end");
    return PMPI_Finalize();
}
