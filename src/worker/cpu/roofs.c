/* What these cores can do at their best: the roofs that the CPU's own results are held against.
 *
 * Memory: all threads sweep at the same time, each over a working set of its own. Bytes are those
 * that the program reads and writes: a cache line that a store fetches first does not count. The
 * set is
 *
 * - for L1 half of it,
 *
 * - for L2 half of what it holds beyond L1,
 *
 * - for L3 all of L2 and half of a thread's share of L3. That is right for an L3 that holds what
 * falls out of L2, and for one that holds everything.
 *
 * - for DRAM four times the L3 of these cores.
 *
 * Arithmetic: independent chains of multiply-adds in registers.
 *
 * A sample lasts long enough for the clock. The best of many samples counts, because a disturbance
 * only ever makes a sample slower. These roofs have no theory beside them: no CPU tells reliably
 * how many units a core has, and how fast its memory is. */
#include "worker/cpu/roofs.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "worker/cpu/memory.h"
#include "worker/cpu/simd.h"
#include "worker/cpu/team.h"

static const double sample_time = 0.5e-3; /* s, at least */
static const double tune_time = 0.02;     /* s, about, for one roof */
/* s: longer than a GPU's ROOF_WINDOW. One pass over the DRAM set may take 10 ms, and a CPU is
 * disturbed more, by other programs or by the neighbours of a virtual machine. */
static const double window = 0.05;
static const double dram_least = 256.0 * 1024.0 * 1024.0; /* byte, all threads */
enum { SAMPLES_MIN = 10, SAMPLES_MAX = 1000, TRIALS_MIN = 5 };
enum { METHODS_MAX = 2 * SIMD_KINDS, LARGE_PAGE = 2 << 20 };

/* A method to do a roof. */
struct method {
    const struct simd *simd; /* NULL: the launch gap */
    simd_sweep *sweep;       /* NULL: not a memory roof */
    bool stream;
    int arrays;
    size_t bytes; /* of one array of one thread */
    simd_fma *fma;
    double work;    /* of one repetition by the whole team: bytes, FLOPs, regions */
    int64_t repeat; /* in a sample */
};

/* What roofs_tune leaves to roofs_measure. */
struct roofs {
    struct method winners[ROOF_KINDS]; /* work 0: not found, or no memory for it */
    char *memory;       /* each thread has touched its share first, and uses no other */
    size_t share, size; /* byte, of one thread and of all */
    int threads;
    double seconds[SAMPLES_MAX];
};

/* Byte of one thread's working set; NaN if the level is not known or memory is too small for it. */
static double set_size(const struct topology *topology, enum memory_level level)
{
    const double *cache = topology->cache;
    double threads = topology->cores;
    double l1 = cache[LEVEL_L1] / threads, l2 = cache[LEVEL_L2] / threads;
    switch (level) {
    case LEVEL_L1:
        return l1 / 2.0;
    case LEVEL_L2:
        return (l2 - l1) / 2.0;
    case LEVEL_L3:
        return l2 + cache[LEVEL_L3] / threads / 2.0;
    case LEVEL_DRAM:
    default: {
        double l3 = fmax(cache[LEVEL_L3], 0.0), wanted = fmax(4.0 * l3, dram_least);
        double bytes = fmin(wanted, memory_available() / 2.0);
        return bytes >= 2.0 * l3 ? bytes / threads : NAN;
    }
    }
}

static bool is_memory(int kind)
{
    return roof_kinds[kind].measure == ROOF_BANDWIDTH && roof_kinds[kind].level < LEVEL_COUNT;
}

static struct method method_of_sweep(const struct simd *simd, int kind, bool stream, size_t set,
                                     int threads)
{
    const struct simd_pattern *pattern = &simd->patterns[roof_kinds[kind].pattern];
    struct method method = {.simd = simd, .stream = stream, .arrays = pattern->arrays, .repeat = 1};
    method.sweep = stream ? pattern->stream : pattern->plain;
    method.bytes = set / (size_t)pattern->arrays / SIMD_BLOCK * SIMD_BLOCK;
    method.work = (double)method.bytes * pattern->moved * threads;
    return method;
}

/* All methods that are tried for a kind of roof; none: a CPU has no such roof. set: bytes of one
 * thread's working set, of a memory roof. Stores past the caches are tried for DRAM only. DRAM is
 * as fast with one width of vectors as with another, so the widest alone is tried. */
static int methods_list(int kind, size_t set, int threads, struct method methods[METHODS_MAX])
{
    const struct roof_kind *info = &roof_kinds[kind];
    const struct simd *vectors[SIMD_KINDS];
    int count = 0;
    if (kind == ROOF_LAUNCH_GAP)
        methods[count++] = (struct method){.work = 1.0, .repeat = 1};
    const bool dram = info->level == LEVEL_DRAM;
    const int widths = is_memory(kind) ? simd_list(vectors) : 0;
    for (int i = 0; i < widths && !(dram && i > 0); ++i) {
        const struct simd_pattern *pattern = &vectors[i]->patterns[info->pattern];
        if (pattern->plain)
            methods[count++] = method_of_sweep(vectors[i], kind, false, set, threads);
        if (dram && pattern->stream)
            methods[count++] = method_of_sweep(vectors[i], kind, true, set, threads);
    }
    const bool chains = info->measure == ROOF_COMPUTE && info->unit == UNIT_VECTOR;
    const int units = chains ? simd_products(info->precision, vectors) : 0;
    for (int i = 0; i < units; ++i)
        if (vectors[i]->fma[info->precision])
            methods[count++] = (struct method){.simd = vectors[i],
                                               .fma = vectors[i]->fma[info->precision],
                                               .work = vectors[i]->flops[info->precision] * threads,
                                               .repeat = 1};
    return count;
}

/* Whether this CPU has the roof: a cache that the system does not know of is none, and so is a unit
 * without instructions. */
static bool kind_exists(const struct topology *topology, int kind)
{
    struct method methods[METHODS_MAX];
    enum memory_level level = roof_kinds[kind].level;
    bool cache = is_memory(kind) && level != LEVEL_DRAM;
    return (!cache || set_size(topology, level) > 0.0) && methods_list(kind, 0, 1, methods) > 0;
}

/* One sample by the whole team: seconds from the first thread's begin to the last one's end. */
static double team_run(const struct roofs *roofs, const struct method *method)
{
    double begin = INFINITY, end = -INFINITY;
#pragma omp parallel reduction(min : begin) reduction(max : end)
    {
        char *own = roofs->memory + (size_t)omp_get_thread_num() * roofs->share;
        double result;
        struct simd_arrays at = {own, own + method->bytes,
                                 own + (size_t)(method->arrays > 2 ? 2 : 0) * method->bytes, 0.5,
                                 &result};
#pragma omp barrier
        begin = clock_monotonic();
        if (method->sweep)
            method->sweep(&at, method->bytes, method->repeat);
        else
            method->fma(0x1p-20, method->repeat, &result);
        end = clock_monotonic();
    }
    return end - begin;
}

/* Of the launch gap: regions of the whole team, one after the other. */
static double method_run(const struct roofs *roofs, const struct method *method)
{
    if (method->simd)
        return team_run(roofs, method);
    double begin = clock_monotonic();
    for (int64_t i = 0; i < method->repeat; ++i) {
#pragma omp parallel
        __asm__ volatile("" : : : "memory");
    }
    return clock_monotonic() - begin;
}

/* One sample, of at least sample_time: the repetitions are doubled until they are enough. */
static double method_sample(const struct roofs *roofs, struct method *method)
{
    double seconds;
    while ((seconds = method_run(roofs, method)) < sample_time)
        method->repeat *= 2;
    return seconds;
}

/* The methods take turns, so that a disturbance hits all of them. */
static struct method method_fastest(const struct roofs *roofs, struct method *methods, int count)
{
    double best = INFINITY, end = clock_monotonic() + tune_time;
    int fastest = 0;
    for (int trial = 0; count > 1 && (trial < TRIALS_MIN || clock_monotonic() < end); ++trial)
        for (int i = 0; i < count; ++i) {
            double seconds = method_sample(roofs, &methods[i]);
            double cost = seconds / ((double)methods[i].repeat * methods[i].work);
            if (cost < best) {
                best = cost;
                fastest = i;
            }
        }
    return methods[fastest];
}

/* Values that differ, and none of them zero: some memory controllers take lines of zeros at twice
 * the speed of others. */
static void memory_touch(const struct roofs *roofs)
{
#pragma omp parallel
    {
        char *memory = roofs->memory + (size_t)omp_get_thread_num() * roofs->share;
        double *own = (double *)(void *)memory;
        for (size_t i = 0; i < roofs->share / sizeof *own; ++i)
            own[i] = 1.0 + (double)(i % 1021) * 1e-3;
    }
}

void roofs_release(struct device_state *state)
{
    if (state->roofs)
        memory_destroy(state->roofs->memory, state->roofs->size);
    free(state->roofs);
    state->roofs = NULL;
}

/* Sets of the levels whose roofs were found, 0 where there is no memory for them; one thread's. */
static size_t sets_find(const struct topology *topology, const bool found[ROOF_KINDS],
                        size_t sets[LEVEL_COUNT])
{
    size_t largest = 0;
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        enum memory_level level = roof_kinds[kind].level;
        if (!found[kind] || !is_memory(kind) || sets[level] > 0)
            continue;
        double wanted = set_size(topology, level);
        sets[level] = wanted >= 8 * SIMD_BLOCK ? (size_t)wanted : 0;
        largest = sets[level] > largest ? sets[level] : largest;
    }
    return largest;
}

enum status roofs_tune(struct device_state *state, const struct roof_request *request, bool prove,
                       bool found[ROOF_KINDS], struct error *error)
{
    (void)prove;
    size_t sets[LEVEL_COUNT] = {0};
    bool wanted[ROOF_KINDS];
    roofs_release(state);
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        wanted[kind] = roof_requested(request, kind) && kind_exists(&state->topology, kind);
    struct roofs *roofs = calloc(1, sizeof *roofs);
    if (!roofs)
        return error_set(error, STATUS_FAILED, "no memory for the roofs");
    state->roofs = roofs;
    roofs->threads = state->topology.cores;
    roofs->share = sets_find(&state->topology, wanted, sets);
    roofs->share = (roofs->share + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    roofs->size = roofs->share * (size_t)roofs->threads;
    roofs->memory = memory_create(roofs->size);
    if (!roofs->memory) {
        error_set(error, STATUS_FAILED, "no memory for the roofs: %zu bytes", roofs->size);
        roofs_release(state);
        return STATUS_FAILED;
    }
    memory_touch(roofs);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        size_t set = is_memory(kind) ? sets[roof_kinds[kind].level] : 0;
        if (!wanted[kind] || (is_memory(kind) && set == 0))
            continue;
        struct method methods[METHODS_MAX];
        int count = methods_list(kind, set, roofs->threads, methods);
        roofs->winners[kind] = method_fastest(roofs, methods, count);
    }
    memcpy(found, wanted, sizeof wanted);
    return STATUS_OK;
}

static void setting_write(const struct roofs *roofs, const struct method *method, struct roof *roof)
{
    char *text = roof->setting, team[32];
    size_t size = sizeof roof->setting;
    double kib = (double)method->bytes * method->arrays / 1024.0;
    bool large = kib >= 1024.0;
    snprintf(team, sizeof team, roofs->threads == 1 ? "1 thread" : "%d threads", roofs->threads);
    if (method->sweep)
        snprintf(text, size, "%s on %.4g %s each, %s%s", team, large ? kib / 1024.0 : kib,
                 large ? "MiB" : "KiB", method->simd->name,
                 method->stream ? ", stores past the caches" : "");
    else if (method->fma)
        snprintf(text, size, "%s of %d chains, %s", team, method->simd->chains, method->simd->name);
    else
        snprintf(text, size, "regions of %s", team);
}

/* Sleeps until shortly before the moment, then watches the clock. False if the moment has
 * passed. */
static bool wait_for(double moment)
{
    const double early = 2e-3;
    double left = moment - clock_epoch();
    if (left < 0.0)
        return false;
    double sleep = fmax(left - early, 0.0);
    struct timespec time = {.tv_sec = (time_t)sleep, .tv_nsec = (long)(fmod(sleep, 1.0) * 1e9)};
    nanosleep(&time, NULL);
    while (clock_epoch() < moment)
        ;
    return true;
}

/* Fills seconds[]. If a sample is too short, the runs that set the number of repetitions were
 * disturbed. Then all samples are taken again, with twice as many repetitions. */
static int64_t samples_take(struct roofs *roofs, struct method *method)
{
    double end = clock_monotonic() + window;
    int64_t samples = 0;
    method_sample(roofs, method); /* wakes the team, and fetches the set into its cache */
    while (samples < SAMPLES_MIN || (samples < SAMPLES_MAX && clock_monotonic() < end)) {
        roofs->seconds[samples] = method_run(roofs, method);
        if (roofs->seconds[samples++] < sample_time) {
            method->repeat *= 2;
            samples = 0;
        }
    }
    return samples;
}

enum status roofs_measure(struct device_state *state, int kind, const struct roof_order *order,
                          struct roof *roof, struct error *error)
{
    struct roofs *roofs = state->roofs;
    struct method *method = roofs ? &roofs->winners[kind] : NULL;
    if (!method || method->work <= 0.0)
        return error_set(error, STATUS_UNSUPPORTED, "%s",
                         method && kind_exists(&state->topology, kind) && is_memory(kind)
                             ? "too little memory is available to exceed the caches"
                             : "this roof was not tuned");
    if (order->start > 0.0 && !wait_for(order->start))
        return error_set(error, STATUS_FAILED, "the common start had passed");
    roof->start_time = clock_date();
    int64_t samples = samples_take(roofs, method);
    roof->sm_clock = topology_clock(&state->topology);
    roof_set_samples(roof, method->work * (double)method->repeat, roofs->seconds, samples);
    setting_write(roofs, method, roof);
    roof_judge(roof);
    return STATUS_OK;
}

enum status roofs_keep_busy(struct device_state *state, int kind, bool (*more)(void *argument),
                            void *argument, struct error *error)
{
    struct roofs *roofs = state->roofs;
    if (!roofs || roofs->winners[kind].work <= 0.0)
        return error_set(error, STATUS_UNSUPPORTED, "this roof was not tuned");
    while (more(argument))
        method_run(roofs, &roofs->winners[kind]);
    return STATUS_OK;
}
