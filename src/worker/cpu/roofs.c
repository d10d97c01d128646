/* What these cores can do at their best: the roofs that the CPU's own results are held against.
 *
 * Memory: each thread sweeps over a working set of its own, all at the same time; bytes are those
 * that the program reads and writes, so a cache line that a store fetches first does not count. The
 * set is half of L1; half of what L2 holds beyond L1; L2 and half of the share of L3, which is
 * right for an L3 that holds what falls out of L2 and for one that holds everything; for DRAM four
 * times the L3 of these cores. Arithmetic: independent chains of multiply-adds in registers. A
 * sample lasts long enough for the clock, and the best of many samples counts: what disturbs a
 * measurement only ever makes it slower. */
#include <math.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../clock.h"
#include "cpu.h"
#include "memory.h"
#include "simd.h"

static const double sample_time = 1e-3;                   /* s, at least */
static const double roof_time = 0.12;                     /* s, all samples of one roof */
static const double dram_least = 256.0 * 1024.0 * 1024.0; /* byte, all threads */

const char *simd_name(void)
{
    return simd_best()->name;
}

/* The text of struct device.roof_settings, "...; " by "...; ". */
struct settings {
    char *text;
    size_t size;
};

static void __attribute__((format(printf, 2, 3)))
settings_add(struct settings *settings, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(settings->text, settings->size, format, arguments);
    va_end(arguments);
    size_t used = length < 0 || (size_t)length >= settings->size ? 0 : (size_t)length;
    settings->text += used;
    settings->size -= used;
}

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

/* One sweep of the whole team, each thread in its own part of `memory`: seconds from the first
 * thread's begin to the last one's end. */
static double sweep_once(simd_sweep *sweep, int arrays, char *memory, size_t set, int64_t repeat)
{
    size_t bytes = set / (size_t)arrays / SIMD_BLOCK * SIMD_BLOCK;
    double begin = INFINITY, end = -INFINITY;
#pragma omp parallel reduction(min : begin) reduction(max : end)
    {
        char *own = memory + (size_t)omp_get_thread_num() * set;
        double result;
        struct simd_arrays at = {own, own + bytes, own + (size_t)(arrays - 1) * bytes, 0.5,
                                 &result};
#pragma omp barrier
        begin = clock_monotonic();
        sweep(&at, bytes, repeat);
        end = clock_monotonic();
    }
    return end - begin;
}

/* byte s-1 */
static double sweep_best(simd_sweep *sweep, int arrays, char *memory, size_t set)
{
    double bytes =
        (double)(set / (size_t)arrays / SIMD_BLOCK * SIMD_BLOCK) * arrays * omp_get_max_threads();
    int64_t repeat = 1;
    while (sweep_once(sweep, arrays, memory, set, repeat) < sample_time)
        repeat *= 2;
    double best = INFINITY, begin = clock_monotonic();
    for (int i = 0; i < 3 || clock_monotonic() - begin < roof_time; ++i)
        best = fmin(best, sweep_once(sweep, arrays, memory, set, repeat));
    return bytes * (double)repeat / best;
}

static enum status measure_memory(const struct device_state *state, enum memory_level level,
                                  struct device *device, struct settings *settings,
                                  struct error *error)
{
    double *const roofs[SIMD_PATTERNS] = {
        &device->bandwidth_read[level], &device->bandwidth_write[level],
        &device->bandwidth_copy[level], &device->bandwidth_triad[level]};
    const struct simd *simd = simd_best();
    double wanted = set_size(&state->topology, level);
    if (!(wanted >= 8 * SIMD_BLOCK))
        return STATUS_OK;
    size_t set = (size_t)wanted / SIMD_BLOCK * SIMD_BLOCK;
    size_t size = set * (size_t)state->topology.cores;
    char *memory = memory_create(size);
    if (!memory)
        return error_set(error, STATUS_FAILED, "no memory for the %s roof: %zu bytes",
                         memory_level_name[level], size);
#pragma omp parallel
    {
        double *own = (double *)(void *)(memory + (size_t)omp_get_thread_num() * set);
        for (size_t i = 0; i < set / sizeof *own; ++i)
            own[i] = 1.0;
    }
    double best = 0.0;
    const char *best_name = "", *best_store = "";
    for (int i = 0; i < SIMD_PATTERNS; ++i) {
        const struct simd_pattern *pattern = &simd->patterns[i];
        double plain = sweep_best(pattern->plain, pattern->arrays, memory, set), stream = 0.0;
        if (level == LEVEL_DRAM && pattern->stream)
            stream = sweep_best(pattern->stream, pattern->arrays, memory, set);
        *roofs[i] = fmax(plain, stream);
        if (*roofs[i] > best) {
            best = *roofs[i];
            best_name = pattern->name;
            best_store = stream > plain ? " past the caches" : "";
        }
    }
    device->peak_bandwidth[level] = best;
    settings_add(settings, "; %s=%s%s, %zu byte per thread", memory_level_name[level], best_name,
                 best_store, set);
    memory_destroy(memory, size);
    return STATUS_OK;
}

static double fma_once(const struct simd *simd, enum precision precision, int64_t iterations)
{
    double begin = INFINITY, end = -INFINITY, sum = 0.0;
#pragma omp parallel reduction(min : begin) reduction(max : end) reduction(+ : sum)
    {
        double result;
#pragma omp barrier
        begin = clock_monotonic();
        simd->fma[precision](0.5, iterations, &result);
        end = clock_monotonic();
        sum += result;
    }
    return isfinite(sum) ? end - begin : NAN;
}

/* FLOP/s */
static double fma_best(const struct simd *simd, enum precision precision)
{
    int64_t iterations = 1024;
    while (fma_once(simd, precision, iterations) < sample_time)
        iterations *= 2;
    double best = INFINITY, begin = clock_monotonic();
    for (int i = 0; i < 3 || clock_monotonic() - begin < roof_time; ++i)
        best = fmin(best, fma_once(simd, precision, iterations));
    return simd->flops[precision] * (double)iterations * omp_get_max_threads() / best;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* s from one region of the whole team to the next: the median of batches. */
static double region_overhead(void)
{
    enum { BATCHES = 101, REGIONS = 100 };
    double batches[BATCHES];
    for (int i = 0; i < BATCHES; ++i) {
        double begin = clock_monotonic();
        for (int j = 0; j < REGIONS; ++j) {
#pragma omp parallel
            __asm__ volatile("" : : : "memory");
        }
        batches[i] = (clock_monotonic() - begin) / REGIONS;
    }
    qsort(batches, BATCHES, sizeof *batches, compare);
    return batches[BATCHES / 2];
}

enum status roofs_measure(struct device_state *state, const struct roof_request *request,
                          struct device *device, struct error *error)
{
    const struct simd *simd = simd_best();
    struct settings settings = {device->roof_settings, sizeof device->roof_settings};
    settings_add(&settings, "threads=%d", state->topology.cores);
    for (int precision = 0; precision < PRECISION_COUNT; ++precision)
        if (request->compute[precision] && simd->fma[precision]) {
            device->peak_vector[precision] = fma_best(simd, (enum precision)precision);
            settings_add(&settings, "; %s=%s, %d chains", precision_info[precision].name,
                         simd->name, simd->chains);
        }
    for (int level = 0; level < LEVEL_COUNT; ++level) {
        enum status status = STATUS_OK;
        if (request->memory[level])
            status = measure_memory(state, (enum memory_level)level, device, &settings, error);
        if (status)
            return status;
    }
    if (request->launch)
        device->launch_overhead = region_overhead();
    return STATUS_OK;
}
