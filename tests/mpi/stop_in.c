/* Preloaded into the ranks of a test: rank STOP_RANK stops itself (SIGSTOP) where it first comes to
 * STOP_IN. So the moments can be met in which a rank is inside MPI, or just before. */
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void stop_in(const char *place)
{
    const char *chosen = getenv("STOP_IN"), *rank = getenv("STOP_RANK");
    const char *own = getenv("OMPI_COMM_WORLD_RANK");
    if (!chosen || !rank || !own || strcmp(chosen, place) != 0 || strcmp(rank, own) != 0)
        return;
    unsetenv("STOP_IN");
    raise(SIGSTOP);
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
