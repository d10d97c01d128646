/* Preloaded into the ranks of a test.
 *
 * STOP_IN, STOP_RANK: rank STOP_RANK stops itself (SIGSTOP) at the first call that STOP_IN names;
 * so tests see sweeps in which a rank hangs inside MPI or just before it.
 * SLOW_RANK: rank SLOW_RANK sleeps 50 ms in each MPI_Sendrecv.
 * EPOCH_SHIFT: seconds that are added to the date.
 * CLOCK_RATE: the monotonic clock runs CLOCK_RATE times as fast, so that a bound of 60 s passes in
 * seconds. With FAST_FROM the clock becomes fast at the moment that a file of this name exists. */
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void stop_in(const char *place)
{
    const char *chosen = getenv("STOP_IN"), *rank = getenv("STOP_RANK");
    const char *own = getenv("OMPI_COMM_WORLD_RANK");
    if (!chosen || !rank || !own || strcmp(chosen, place) != 0 || strcmp(rank, own) != 0)
        return;
    unsetenv("STOP_IN");
    raise(SIGSTOP);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*next)(clockid_t, struct timespec *);
    static double began; /* s, time at which the clock became fast; 0: it runs at its usual rate */
    const char *shift = getenv("EPOCH_SHIFT"), *file = getenv("FAST_FROM");
    const char *rate = getenv("CLOCK_RATE");
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
    const char *slow = getenv("SLOW_RANK"), *own = getenv("OMPI_COMM_WORLD_RANK");
    if (slow && own && strcmp(slow, own) == 0)
        usleep(50000);
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
