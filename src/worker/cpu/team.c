#include "worker/cpu/team.h"

#include <errno.h>
#include <omp.h>
#include <string.h>

#include "worker/cpu/blas.h"

/* The calling thread to some of the processors; errno, or 0. */
static int thread_bind(const int *cpus, int count)
{
    int largest = 0, failure = 0;
    for (int i = 0; i < count; ++i)
        largest = cpus[i] > largest ? cpus[i] : largest;
    size_t size = CPU_ALLOC_SIZE((size_t)largest + 1);
    cpu_set_t *set = CPU_ALLOC((size_t)largest + 1);
    if (!set)
        return ENOMEM;
    CPU_ZERO_S(size, set);
    for (int i = 0; i < count; ++i)
        CPU_SET_S((size_t)cpus[i], size, set);
    if (sched_setaffinity(0, size, set) != 0)
        failure = errno;
    CPU_FREE(set);
    return failure;
}

enum status team_bind(const struct topology *topology, struct error *error)
{
    int threads = 0, failure = 0;
    blas_single_thread(); /* first: an OpenBLAS on OpenMP sets the number of OpenMP's threads */
    omp_set_dynamic(0);
    omp_set_num_threads(topology->cores);
#pragma omp parallel reduction(max : failure)
    {
        int thread = omp_get_thread_num();
#pragma omp single
        threads = omp_get_num_threads();
        if (thread < topology->cores)
            failure = thread_bind(&topology->cpus[thread], 1);
    }
    if (threads != topology->cores)
        return error_set(error, STATUS_DEVICE,
                         "OpenMP gives %d threads for %d cores; is OMP_THREAD_LIMIT set?", threads,
                         topology->cores);
    if (failure != 0)
        return error_set(error, STATUS_DEVICE, "a thread cannot be bound to its core: %s",
                         strerror(failure));
    return STATUS_OK;
}

/* Of two threads none is ever ended: a region of one thread is none. */
void team_loosen(const struct topology *topology)
{
    if (topology->cores > 2)
        thread_bind(topology->cpus, topology->cores);
}

void team_unbind(const struct topology *topology)
{
#pragma omp parallel
    sched_setaffinity(0, topology->mask_size, topology->mask);
}
