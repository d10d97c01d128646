/* Measures the roofs of these cores.
 *
 * Memory: all threads sweep at the same time, each over its own working set. Bytes are those that
 * the program reads and writes, without the lines that a store fetches first. A thread's working
 * set is half of L1, half of what L2 has beyond L1, or for DRAM its share of four times L3. For L3
 * it is at most L2 plus half of the thread's share of L3, which suits both an L3 that holds lines
 * evicted from L2 and an L3 that holds everything. Virtual machines report an L3 that they share
 * with others, so the largest set (from twice L2 on) with nearly the best rate of reads is taken.
 *
 * Arithmetic: independent chains of multiply-adds in registers.
 *
 * roofs_tune times the variants of each roof and keeps the fastest. A roof is the best of many
 * samples, because a disturbance only makes a sample slower. If memory is short, a roof stays
 * untuned, and measuring it fails with this reason. Tuning takes about 20 ms for each roof with
 * several variants, measuring 50 ms. There is no theoretical value: CPUs do not report their
 * units and memory speed reliably. */
#include "worker/cpu/roofs.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/cpu/memory.h"
#include "worker/cpu/simd.h"
#include "worker/cpu/team.h"

static const double sample_time = 0.5e-3; /* s, at least */
static const double tune_time = 0.02;     /* s; rough time to tune one roof */
/* s, longer than a GPU's ROOF_WINDOW: a pass over the DRAM set may take 10 ms, and other programs
 * or neighbours of a virtual machine disturb a CPU more. */
static const double window = 0.05;
static const double dram_least = 256.0 * 1024.0 * 1024.0; /* byte, sum over all threads */
enum { SAMPLES_MIN = 10, SAMPLES_MAX = 1000, TRIALS_MIN = 5 };
enum { VARIANTS_MAX = 2 * SIMD_KINDS, LARGE_PAGE = 2 << 20 };

struct variant {
    const struct simd *simd; /* NULL: the launch gap */
    simd_sweep *sweep;       /* NULL: not a memory roof */
    bool stream;             /* stores bypass the caches */
    int arrays;
    size_t bytes; /* of one array of one thread */
    simd_fma *fma;
    double work;    /* bytes, FLOPs or regions of one repetition by the whole team */
    int64_t repeat; /* repetitions in a sample */
};

struct roofs {
    struct variant winners[ROOF_KINDS]; /* work = 0: not tuned */
    char *memory;       /* owned; each thread uses a share that this thread touched first */
    size_t share, size; /* byte, memory of one thread and of all threads */
    int threads;
    size_t l3_set; /* byte, working set of one thread in L3 */
    double seconds[SAMPLES_MAX];
};

/* Returns the bytes of a thread's working set; NaN: the level is unknown, or memory is short. */
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

static struct variant variant_of_sweep(const struct simd *simd, int kind, bool stream, size_t set,
                                       int threads)
{
    const struct simd_pattern *pattern = &simd->patterns[roof_kinds[kind].pattern];
    struct variant variant = {
        .simd = simd, .stream = stream, .arrays = pattern->arrays, .repeat = 1};
    variant.sweep = stream ? pattern->stream : pattern->plain;
    variant.bytes = set / (size_t)pattern->arrays / SIMD_BLOCK * SIMD_BLOCK;
    variant.work = (double)variant.bytes * pattern->moved * threads;
    return variant;
}

/* Lists the variants of a kind of roof; none: CPUs lack this roof. set: bytes of a thread's working
 * set. For DRAM, variants with stores that bypass the caches come in addition, and all variants
 * have the widest vectors, because the width makes no difference. */
static int variants_list(int kind, size_t set, int threads, struct variant variants[VARIANTS_MAX])
{
    const struct roof_kind *info = &roof_kinds[kind];
    const struct simd *vectors[SIMD_KINDS];
    int count = 0;
    if (kind == ROOF_LAUNCH_GAP)
        variants[count++] = (struct variant){.work = 1.0, .repeat = 1};
    const bool dram = info->level == LEVEL_DRAM;
    const int widths = is_memory(kind) ? simd_list(vectors) : 0;
    for (int i = 0; i < widths && !(dram && i > 0); ++i) {
        const struct simd_pattern *pattern = &vectors[i]->patterns[info->pattern];
        if (pattern->plain)
            variants[count++] = variant_of_sweep(vectors[i], kind, false, set, threads);
        if (dram && pattern->stream)
            variants[count++] = variant_of_sweep(vectors[i], kind, true, set, threads);
    }
    const bool chains = info->measure == ROOF_COMPUTE && info->unit == UNIT_VECTOR;
    const int units = chains ? simd_products(info->precision, vectors) : 0;
    for (int i = 0; i < units; ++i)
        if (vectors[i]->fma[info->precision])
            variants[count++] =
                (struct variant){.simd = vectors[i],
                                 .fma = vectors[i]->fma[info->precision],
                                 .work = vectors[i]->flops[info->precision] * threads,
                                 .repeat = 1};
    return count;
}

/* Returns whether the system knows the roof's cache, and the CPU has instructions for the unit. */
static bool kind_exists(const struct topology *topology, int kind)
{
    struct variant variants[VARIANTS_MAX];
    enum memory_level level = roof_kinds[kind].level;
    bool cache = is_memory(kind) && level != LEVEL_DRAM;
    return (!cache || set_size(topology, level) > 0.0) && variants_list(kind, 0, 1, variants) > 0;
}

/* Runs one sample. Returns the seconds from the first thread's begin to the last one's end. */
static double team_run(const struct roofs *roofs, const struct variant *variant)
{
    double begin = INFINITY, end = -INFINITY;
#pragma omp parallel reduction(min : begin) reduction(max : end)
    {
        char *own = roofs->memory + (size_t)omp_get_thread_num() * roofs->share;
        double result;
        struct simd_arrays at = {own, own + variant->bytes,
                                 own + (size_t)(variant->arrays > 2 ? 2 : 0) * variant->bytes, 0.5,
                                 &result};
#pragma omp barrier
        begin = clock_monotonic();
        if (variant->sweep)
            variant->sweep(&at, variant->bytes, variant->repeat);
        else
            variant->fma(0x1p-20, variant->repeat, &result);
        end = clock_monotonic();
    }
    return end - begin;
}

/* A sample of the launch gap is a series of regions. */
static double variant_run(const struct roofs *roofs, const struct variant *variant)
{
    if (variant->simd)
        return team_run(roofs, variant);
    double begin = clock_monotonic();
    for (int64_t i = 0; i < variant->repeat; ++i) {
#pragma omp parallel
        __asm__ volatile("" : : : "memory");
    }
    return clock_monotonic() - begin;
}

static double variant_sample(const struct roofs *roofs, struct variant *variant)
{
    double seconds;
    while ((seconds = variant_run(roofs, variant)) < sample_time)
        variant->repeat *= 2;
    return seconds;
}

/* Times the variants in turn, so that a disturbance hits all of them. */
static struct variant variant_fastest(const struct roofs *roofs, struct variant *variants,
                                      int count)
{
    double best = INFINITY, end = clock_monotonic() + tune_time;
    int fastest = 0;
    for (int trial = 0; count > 1 && (trial < TRIALS_MIN || clock_monotonic() < end); ++trial)
        for (int i = 0; i < count; ++i) {
            double seconds = variant_sample(roofs, &variants[i]);
            double cost = seconds / ((double)variants[i].repeat * variants[i].work);
            if (cost < best) {
                best = cost;
                fastest = i;
            }
        }
    return variants[fastest];
}

/* Writes various values: some memory controllers are twice as fast with lines of zeros. */
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

/* Returns the largest set up to `most` that is read at nearly the rate of the smallest set. */
static size_t l3_set_find(const struct roofs *roofs, double l2, size_t most)
{
    const double step = 1.5, near = 1.2;
    const struct simd *vectors[SIMD_KINDS];
    double cheapest = INFINITY;
    size_t found = most;
    if (simd_list(vectors) == 0)
        return most;
    double set = 2.0 * l2;
    while (set < (double)most) {
        struct variant variant =
            variant_of_sweep(vectors[0], ROOF_L3_READ, false, (size_t)set, roofs->threads);
        double cost = INFINITY;
        for (int trial = 0; trial < TRIALS_MIN; ++trial)
            cost = fmin(cost, variant_sample(roofs, &variant) / (double)variant.repeat);
        cost /= variant.work;
        cheapest = fmin(cheapest, cost);
        if (cost <= near * cheapest)
            found = (size_t)set;
        set *= step;
    }
    return found;
}

/* sets[]: a thread's working set, byte; 0: no wanted roof, or no memory. Returns the largest. */
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
    if (sets[LEVEL_L3] > 0)
        sets[LEVEL_L3] = roofs->l3_set =
            l3_set_find(roofs, state->topology.cache[LEVEL_L2] / roofs->threads, sets[LEVEL_L3]);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        size_t set = is_memory(kind) ? sets[roof_kinds[kind].level] : 0;
        if (!wanted[kind] || (is_memory(kind) && set == 0))
            continue;
        struct variant variants[VARIANTS_MAX];
        int count = variants_list(kind, set, roofs->threads, variants);
        roofs->winners[kind] = variant_fastest(roofs, variants, count);
    }
    memcpy(found, wanted, sizeof wanted);
    return STATUS_OK;
}

static void setting_write(const struct roofs *roofs, const struct variant *variant,
                          struct roof *roof)
{
    char *text = roof->setting, team[32];
    size_t size = sizeof roof->setting;
    double kib = (double)variant->bytes * variant->arrays / 1024.0;
    bool large = kib >= 1024.0;
    snprintf(team, sizeof team, roofs->threads == 1 ? "1 thread" : "%d threads", roofs->threads);
    if (variant->sweep)
        snprintf(text, size, "%s on %.4g %s each, %s%s", team, large ? kib / 1024.0 : kib,
                 large ? "MiB" : "KiB", variant->simd->name,
                 variant->stream ? ", stores past the caches" : "");
    else if (variant->fma)
        snprintf(text, size, "%s of %d chains, %s", team, variant->simd->chains,
                 variant->simd->name);
    else
        snprintf(text, size, "regions of %s", team);
}

/* Sleeps until shortly before the moment, then polls the clock. Returns false if it has passed. */
static bool wait_for(double moment)
{
    const double early = 2e-3;
    double left = moment - clock_epoch();
    if (left < 0.0)
        return false;
    if (left > early)
        clock_sleep(left - early);
    while (clock_epoch() < moment)
        ;
    return true;
}

/* A sample that is too short shows that a disturbance had made the repetitions too few: then all
 * samples are taken again, with twice as many repetitions. */
static int64_t samples_take(struct roofs *roofs, struct variant *variant)
{
    double end = clock_monotonic() + window;
    int64_t samples = 0;
    variant_sample(roofs, variant); /* wakes the team and loads the set into its cache */
    while (samples < SAMPLES_MIN || (samples < SAMPLES_MAX && clock_monotonic() < end)) {
        roofs->seconds[samples] = variant_run(roofs, variant);
        if (roofs->seconds[samples++] < sample_time) {
            variant->repeat *= 2;
            samples = 0;
        }
    }
    return samples;
}

enum status roofs_measure(struct device_state *state, int kind, const struct roof_order *order,
                          struct roof *roof, struct error *error)
{
    struct roofs *roofs = state->roofs;
    struct variant *variant = roofs ? &roofs->winners[kind] : NULL;
    if (!variant || variant->work <= 0.0)
        return error_set(error, STATUS_UNSUPPORTED, "%s",
                         variant && kind_exists(&state->topology, kind) && is_memory(kind)
                             ? "too little memory is available to exceed the caches"
                             : "this roof was not tuned");
    if (order->start > 0.0 && !wait_for(order->start))
        return error_set(error, STATUS_FAILED, "the common start had passed");
    roof->start_time = clock_date();
    int64_t samples = samples_take(roofs, variant);
    roof->sm_clock = topology_clock(&state->topology);
    roof_set_samples(roof, variant->work * (double)variant->repeat, roofs->seconds, samples);
    if (kind == ROOF_L3_READ)
        roof->working_set = (double)roofs->l3_set * roofs->threads;
    setting_write(roofs, variant, roof);
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
        variant_run(roofs, &roofs->winners[kind]);
    return STATUS_OK;
}
