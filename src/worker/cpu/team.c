#include "worker/cpu/team.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/cpu/memory.h"
#include "worker/cpu/routine.h"

/* Binds the calling thread. Returns 0 or errno. */
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

/* With two cores libgomp never ends a thread: a region of one thread runs in the caller. */
void team_unbind_caller(const struct topology *topology)
{
    if (topology->cores > 2)
        thread_bind(topology->cpus, topology->cores);
}

void team_unbind(const struct topology *topology)
{
#pragma omp parallel
    sched_setaffinity(0, topology->mask_size, topology->mask);
}

/* Makes a buffer of twice the last-level cache. Each core reads an equal share. */
static enum status flush_create(struct device_state *state, struct error *error)
{
    const double least = 64.0 * 1024 * 1024; /* byte */
    if (state->flush)
        return STATUS_OK;
    double size = fmax(2.0 * state->topology.cache[LEVEL_L3], least);
    char *flush = size > memory_available() ? NULL : memory_create((size_t)size);
    if (!flush)
        return error_set(error, STATUS_FAILED, "no memory for the %.4g bytes that flush the caches",
                         size);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < (size_t)size; ++i)
        flush[i] = 1; /* otherwise all pages would be one zero page */
    state->flush = flush;
    state->flush_size = (size_t)size;
    return STATUS_OK;
}

/* Reads only, because modified lines would be written back during the timed work. */
static void flush_caches(const struct device_state *state)
{
    const uint64_t *data = state->flush;
    uint64_t sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
    for (size_t i = 0; i < state->flush_size / sizeof *data; ++i)
        sum += data[i];
    __asm__ volatile("" : : "r"(sum));
}

/* Returns the time, s, for which threads of the team waited for a core: in a run queue, also
 * because of a cgroup's quota, or because the hypervisor had taken the core (in steps of 10 ms; the
 * cores' share of the machine's sum). NaN: the kernel has no SCHED_INFO. */
static double waiting_read(const struct topology *topology)
{
    double sum = 0, ticks;
    FILE *stat = fopen("/proc/stat", "re");
    if (stat && fscanf(stat, "cpu %*s %*s %*s %*s %*s %*s %*s %lf", &ticks) == 1)
        sum = ticks / (double)sysconf(_SC_CLK_TCK) * topology->cores /
              (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (stat)
        fclose(stat);
#pragma omp parallel reduction(+ : sum)
    {
        double waited; /* ns */
        FILE *own = fopen("/proc/thread-self/schedstat", "re");
        sum += own && fscanf(own, "%*s %lf", &waited) == 1 ? 1e-9 * waited : NAN;
        if (own)
            fclose(own);
    }
    return sum;
}

/* The readings of /proc are outside of what lies between begin and end. */
static struct occupancy occupancy_begin(const struct topology *topology)
{
    const double waiting = waiting_read(topology);
    struct occupancy now = measure_occupancy(RUSAGE_SELF);
    now.waiting = waiting;
    return now;
}

/* The kernel adds up the time of other threads in ticks of up to 10 ms, so a shorter time between
 * begin and end shows no shares. */
static void occupancy_end(const struct topology *topology, const struct occupancy *before,
                          struct occupancy *sum)
{
    const double least = 10e-3; /* s */
    const struct occupancy now = measure_occupancy(RUSAGE_SELF);
    const double waited = waiting_read(topology) - before->waiting;
    sum->switches += now.switches - before->switches;
    if (now.wall - before->wall < least)
        return;
    sum->wall += now.wall - before->wall;
    sum->running += now.running - before->running;
    sum->waiting += waited < 0 ? 0 : waited; /* threads may have ended */
}

/* The timer's overhead is the least difference of two clock readings. */
static void record_fill(const struct device_state *state, struct record *record)
{
    enum { READINGS = 100 };
    record->sm_clock = topology_clock(&state->topology);
    record->sample_iterations = 1;
    record->timer_overhead = INFINITY;
    for (int i = 0; i < READINGS; ++i) {
        double begin = clock_monotonic();
        record->timer_overhead = fmin(record->timer_overhead, clock_monotonic() - begin);
    }
}

enum status team_iterate(struct work *work, struct trace *trace, struct error *error)
{
    work_run(work, trace);
    return work->failed ? error_set(error, STATUS_FAILED, "oneDNN failed in an iteration")
                        : STATUS_OK;
}

enum status team_bind_after(const struct topology *topology, enum status status,
                            struct error *error)
{
    struct error unbound;
    if (team_bind(topology, &unbound) == STATUS_OK)
        return status;
    *error = unbound;
    return STATUS_DEVICE;
}

/* The occupancy is that of all samples, or with a cold cache of each without its flush. */
enum status team_time(struct device_state *state, struct work *work, bool cold, int samples,
                      double *seconds, struct record *record, struct error *error)
{
    const struct topology *topology = &state->topology;
    struct occupancy before = {0}, unused = {0}, *sum = record ? &work->occupied : &unused;
    enum status status = STATUS_OK;
    TRY(cold ? flush_create(state, error) : STATUS_OK);
    if (work->routine->own_regions)
        team_unbind_caller(topology);
    for (int i = 0; i < samples && status == STATUS_OK; ++i) {
        if (cold)
            flush_caches(state);
        if (cold || i == 0)
            before = occupancy_begin(topology);
        double begin = clock_monotonic();
        status = team_iterate(work, NULL, error);
        seconds[i] = clock_monotonic() - begin;
        if (cold || i == samples - 1)
            occupancy_end(topology, &before, sum);
    }
    if (work->routine->own_regions)
        status = team_bind_after(topology, status, error);
    if (status == STATUS_OK && record) {
        measure_keep_occupancy(sum, topology->cores, record);
        record_fill(state, record);
    }
    return status;
}

double trace_begin(const struct trace *trace)
{
    return trace ? clock_monotonic() : 0.0;
}

void trace_end(struct trace *trace, const char *name, double begin)
{
    if (!trace)
        return;
    size_t i = 0;
    while (i < trace->count && strcmp(trace->regions[i].name, name) != 0)
        ++i;
    if (i == trace->count) {
        trace->regions[i].name = name;
        trace->count++;
    }
    trace->regions[i].count++;
    trace->regions[i].time += clock_monotonic() - begin;
}

/* trace_time is the whole iteration, because no queue separates host and regions. */
enum status team_trace(struct device_state *state, struct work *work, bool cold,
                       struct record *record, struct error *error)
{
    struct trace trace = {.count = 0};
    TRY(cold ? flush_create(state, error) : STATUS_OK);
    if (cold)
        flush_caches(state);
    double begin = clock_monotonic();
    TRY(team_iterate(work, &trace, error));
    record->trace_time = clock_monotonic() - begin;
    struct kernel kernels[sizeof trace.regions / sizeof *trace.regions];
    int64_t launches = 0;
    double busy = 0.0;
    for (size_t i = 0; i < trace.count; ++i) {
        fields_clear(kernel_fields, &kernels[i]);
        strcpy(kernels[i].name, trace.regions[i].name);
        kernels[i].count = trace.regions[i].count;
        kernels[i].time = trace.regions[i].time;
        launches += trace.regions[i].count;
        busy += trace.regions[i].time;
    }
    TRY(record_set_kernels(record, kernels, trace.count, error));
    record->launches = launches;
    record->busy_time = busy;
    return STATUS_OK;
}
