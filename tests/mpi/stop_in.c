/* Preloaded into the ranks of a test: rank STOP_RANK stops itself (SIGSTOP) where it first comes to
 * STOP_IN. So the moments can be met in which a rank is inside MPI, or just before. And their
 * clocks: EPOCH_SHIFT is added to the date (s); once the file FAST_FROM is there, a second takes 10
 * ms. */
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
    static double began; /* s */
    const char *shift = getenv("EPOCH_SHIFT"), *file = getenv("FAST_FROM");
    if (!next)
        next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = next(clock, now);
    if (clock == CLOCK_REALTIME && shift)
        now->tv_sec += atol(shift);
    if (clock == CLOCK_MONOTONIC && file && (began > 0 || access(file, F_OK) == 0)) {
        double seconds = (double)now->tv_sec + 1e-9 * (double)now->tv_nsec;
        began = began > 0 ? began : seconds;
        seconds = began + 100 * (seconds - began);
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

/* A rank opens one to each worker that it starts. */
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
