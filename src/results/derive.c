/* Derived values of a row: figures relative to the roofs, the limiter with its evidence, and the
 * energy that the work would take at the roofs.
 *
 * Counted FLOPs and bytes are used if the record has them, otherwise modelled ones. Each memory
 * level has its own counted bytes; the level that needs longest for its bytes is the bandwidth
 * roof. Modelled bytes are compulsory traffic and come from one level. With a hot cache this level
 * is the nearest one that has room for the footprint: by its measured working set, or else its
 * capacity; on a GPU only l2 counts. Otherwise the level is device memory. If the level has no
 * measured roof, values that need the roof are missing; no other level replaces it.
 *
 * These functions need no set-up or memory, and report no errors. A missing input is NaN, and all
 * values that depend on it become NaN. A comparison with NaN is false, and fmax ignores NaN;
 * comments mark where that matters. tests/postproc/recompute.py computes all values again in
 * Python. */
#include "results/derive.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/device_kind.h"

const char *const limiter_name[] = {"compute", "bandwidth", "latency", "kernel", "overhead",
                                    "host",    "unknown",   "gaps",    NULL};

#define R(member, type, units, ...)                                                                \
    FIELD(struct derived, member, type, units, __VA_ARGS__, .origin = FIELD_DERIVED)
#define F(member, flags, ...)                                                                      \
    FIELD_OF_FLAGS(struct derived, member, flags, __VA_ARGS__, .origin = FIELD_DERIVED)
const struct field derived_fields[] = {
    R(sm_clock, FIELD_DOUBLE, "s-1", "multiprocessor or core clock over the timed loop",
      .comment = "GPUs: cycles that the device counted, over its own time"),
    R(arithmetic_intensity, FIELD_LEVELS, "byte-1", "arithmetic intensity: FLOPs per byte",
      .comment =
          "counted, or else modelled; modelled bytes are traffic of roof_memory_level. l1 is "
          "missing, as in level_time, where its counters saw less than 95 % of the bytes of "
          "l2: copies by the tensor memory accelerator bypass l1. dram of a cold cache: at least "
          "bytes_model, because writes that stay in l2 reach it later"),
    R(roof_memory_level, FIELD_TEXT, NULL, "memory level of the bandwidth roof",
      .comment =
          "with counted bytes the level that needs longest for its bytes; with modelled bytes "
          "dram, or the nearest cache that holds the footprint (GPUs: l2)"),
    R(performance, FIELD_DOUBLE, "s-1", "performance: FLOP/s", ALWAYS,
      .comment = "FLOPs, counted or else modelled, over time_median less the timer's time"),
    R(roof_fraction, FIELD_DOUBLE, "1", "fraction of the roof that was reached", ALWAYS,
      .comment = "performance over the least of compute_roof, arithmetic_intensity x "
                 "bandwidth_roof and FLOPs / overhead_time; without FLOPs, bytes / "
                 "time / bandwidth_roof"),
    R(compute_roof, FIELD_DOUBLE, "s-1", "compute roof of the row's units, at its clock: FLOP/s",
      .comment = "a roof's FLOPs per cycle times sm_clock; without a clock the roof itself"),
    R(bandwidth_roof, FIELD_DOUBLE, "byte s-1", "bandwidth roof of the row's mix of directions",
      .comment = "at roof_memory_level: bytes over level_time"),
    R(level_time, FIELD_LEVELS, "s", "time that a memory level's bytes would take at its roof",
      .comment = "at the roof of the level's mix of reads and writes: the time per byte is "
                 "interpolated between the measured mixes read, triad, copy and write"),
    R(overhead_time, FIELD_DOUBLE, "s", "launch overhead of one iteration",
      .comment = "launches times device_launch_overhead; launches by a graph times the roof "
                 "launch gap graph"),
    F(paper_bound, roofline_bound_name, "what bounds the run time, by the paper's Roofline",
      .flags_known = true,
      .comment =
          "overhead if the time, or FLOPs / compute_roof and bytes / bandwidth_roof, are below "
          "overhead_time; else compute if arithmetic_intensity is at least compute_roof / "
          "bandwidth_roof, else bandwidth",
      ALWAYS),
    R(gap_time, FIELD_DOUBLE, "s", "time in which the device was idle between kernels",
      .comment = "time_median - timer_overhead / sample_iterations - busy_time, at least 0; on "
                 "CPUs within the traced run"),
    F(limiter, limiter_name, "what limits the time, by measured shares", .flags_known = true,
      .comment = "compute or bandwidth from 60 % of the time on; else the larger of gap (overhead; "
                 "host if host_paced; gaps if it is unknown which) and rest (latency: too few "
                 "blocks; kernel); limiter_evidence has the shares. limit is finer, by counted "
                 "activities: a bandwidth row may wait for its bytes most of the time",
      ALWAYS),
    R(limiter_evidence, FIELD_TEXT, NULL, "the shares that limiter follows from"),
    R(cause, FIELD_TEXT, NULL, "why the kernel that takes longest reaches no roof",
      .comment = "from kernel_activity: names of units at least 60 % busy, else latency and the "
                 "reasons of the wait; idle: multiprocessors without a thread"),
    R(time_part, FIELD_TIME_PARTS, "s", "parts of the time of an iteration",
      .comment = "their sum is time_median less the timer's time; kernels without kernel_activity "
                 "are inside_kernels, as are threads of CPUs that run below their roof"),
    R(limit, FIELD_TEXT, NULL, "unit, memory level or part that limits the time",
      .comment = "the unit or roof with at least 80 % of the time, else the largest time_part; "
                 "mixed: the two largest are within 5 points. limiter needs only FLOPs, bytes and "
                 "kernel times"),
    R(energy_at_roofs, FIELD_DOUBLE, "J", "energy of one iteration by the energy roofs",
      .comment = "device_roof_constant_power x energy_time (or else the row's time) + FLOPs and "
                 "bytes x device_roof_energy; a byte counts at the farthest level that it reaches"),
    R(energy_constant_share, FIELD_DOUBLE, "1", "share of the constant power in energy_at_roofs"),
    {0},
};

#define K(member, ...)                                                                             \
    FIELD(struct derived_kernel, member, FIELD_INTEGER, "1", __VA_ARGS__, .origin = FIELD_DERIVED)
const struct field derived_kernel_fields[] = {
    K(blocks, "blocks of one launch"), K(threads, "threads of one block"), {0}};

static double number_of(int64_t value)
{
    return value == FIELD_MISSING ? NAN : (double)value;
}

/* ---- kernels ---- */

static int64_t product(int64_t x, int64_t y, int64_t z)
{
    bool known = x != FIELD_MISSING && y != FIELD_MISSING && z != FIELD_MISSING;
    return known ? x * y * z : FIELD_MISSING;
}

struct derived_kernel derive_kernel(const struct kernel *kernel)
{
    return (struct derived_kernel){
        .blocks = product(kernel->grid_x, kernel->grid_y, kernel->grid_z),
        .threads = product(kernel->block_x, kernel->block_y, kernel->block_z),
    };
}

/* Kernels have enough blocks from this share of a wave on. */
static const double full_wave = 0.9;

/* The share of the kernels' time that is spent in kernels with less than nine tenths of a wave. A
 * wave is the number of blocks that the device holds at a time. The share is missing without a
 * trace, and on CPUs, where kernels have no blocks. */
static double few_blocks_share(const struct record *record)
{
    double time = 0, few = 0;
    bool known = record->kernel_count > 0;
    for (size_t i = 0; i < record->kernel_count; ++i) {
        const struct kernel *kernel = &record->kernels[i];
        int64_t blocks = derive_kernel(kernel).blocks;
        known &= blocks != FIELD_MISSING && kernel->resident != FIELD_MISSING;
        time += kernel->time;
        few += (double)blocks < full_wave * (double)kernel->resident ? kernel->time : 0;
    }
    return known ? few / time : NAN;
}

/* ---- FLOPs by unit ---- */

static double rate_of(const double vector[PRECISION_COUNT], const double tensor[PRECISION_COUNT],
                      int64_t unit, enum precision precision)
{
    if ((unit != UNIT_VECTOR && unit != UNIT_TENSOR) || precision == PRECISION_COUNT)
        return NAN;
    return (unit == UNIT_VECTOR ? vector : tensor)[precision];
}

/* Returns the roof of a unit at the row's own clock, s-1. The measurement of a roof loads the
 * device longer than a short row, so power and heat cause different clocks, but not different FLOPs
 * per cycle. The result is the FLOPs per cycle of the device's best roof times the clock that was
 * counted in the row. If either is missing, the result is the roof as measured. */
static double peak_of(const struct record *record, const struct device *device, int64_t unit,
                      enum precision precision)
{
    double own = rate_of(device->cycle_vector, device->cycle_tensor, unit, precision) *
                 device_clock(device, record->sm_clock_counted);
    return isnan(own) ? rate_of(device->peak_vector, device->peak_tensor, unit, precision) : own;
}

/* Returns FLOPs per joule; the constant power does not count. */
static double yield_of(const struct record *record, const struct device *device, int64_t unit,
                       enum precision precision)
{
    (void)record;
    return 1 / device_flop_energy(device, unit, precision);
}

/* Returns FLOPs per second, or per joule. */
typedef double unit_rate(const struct record *record, const struct device *device, int64_t unit,
                         enum precision precision);

/* Returns the cost (s or J) of `part`, a part of the row's FLOPs. If the rate is unknown, the cost
 * is 0 for a part below 1 % of all FLOPs, and NaN for a larger part. */
static double part_cost(double part, double rate, double all)
{
    const double negligible = 0.01;
    if (isnan(part) || part == 0)
        return 0;
    return isnan(rate) && part < negligible * all ? 0 : part / rate;
}

/* Returns the cost (s or J) of a unit's FLOPs in all precisions. int8 operations are no FLOPs. */
static double parts_cost(const double parts[PRECISION_COUNT], enum unit unit,
                         const struct record *record, const struct device *device, double flops,
                         unit_rate *rate)
{
    double cost = 0;
    for (int i = 0; i < PRECISION_COUNT; ++i)
        if (i != PRECISION_INT8)
            cost += part_cost(parts[i], rate(record, device, unit, i), flops);
    return cost;
}

static enum precision precision_of(const struct record *record)
{
    return record->config.workload ? config_precision(&record->config) : PRECISION_COUNT;
}

struct units_cost {
    double vector, tensor;
};

/* Returns the cost (s or J) of each unit's FLOPs. If FLOPs were not counted by unit, record->unit
 * is taken to do all of them, in the configured precision. */
static struct units_cost units_cost(const struct record *record, const struct device *device,
                                    double flops, unit_rate *rate)
{
    bool apart = false;
    for (int i = 0; i < PRECISION_COUNT && !isnan(record->flops_counted); ++i)
        apart |= i != PRECISION_INT8 && !isnan(record->flops_vector[i]);
    if (!apart)
        return (struct units_cost){flops / rate(record, device, record->unit, precision_of(record)),
                                   0};
    return (struct units_cost){
        parts_cost(record->flops_vector, UNIT_VECTOR, record, device, flops, rate),
        parts_cost(record->flops_tensor, UNIT_TENSOR, record, device, flops, rate)};
}

/* Returns the time of an iteration without the timer's own time, s. Programs have no timer. */
static double own_time(const struct record *record)
{
    const double timer = record->timer_overhead / number_of(record->sample_iterations);
    return isnan(timer) ? record->time_median : record->time_median - timer;
}

/* Returns the time of the unit that needs longest, s: the units work at the same time. */
static double units_derive(const struct record *record, const struct device *device, double flops,
                           struct derived *derived)
{
    double own = peak_of(record, device, record->unit, precision_of(record));
    const struct units_cost cost = units_cost(record, device, flops, peak_of);
    double time = isnan(cost.vector + cost.tensor) ? NAN : fmax(cost.vector, cost.tensor);
    derived->performance = flops / own_time(record);
    derived->compute_roof = flops > 0 ? flops / time : own;
    return time;
}

/* ---- bytes by memory level ---- */

/* Bytes that a level moves; `written` is NaN if the number of written bytes is unknown. */
struct traffic {
    double written, all;
};

static bool bytes_counted(const struct record *record)
{
    return !isnan(record->bytes_counted[LEVEL_DRAM]);
}

/* Whether traffic bypasses the level. Traffic through L1 reaches L2 at most once, so more bytes in
 * L2 than in L1 are copies by the tensor memory accelerator, which bypass L1 and its counters. */
static bool passes_by(const struct record *record, int level)
{
    const double accuracy = 0.05;
    return level == LEVEL_L1 &&
           record->bytes_counted[LEVEL_L1] < (1 - accuracy) * record->bytes_counted[LEVEL_L2];
}

/* Modelled bytes are traffic of level `own`; how many of them are written is unknown. After a flush
 * device memory moves at least the compulsory bytes. If fewer were counted, the missing bytes are
 * writes that are still in a cache. */
static struct traffic traffic_of(const struct record *record, int own, int level)
{
    const double counted = record->bytes_counted[level];
    if (!bytes_counted(record))
        return (struct traffic){NAN, level == own ? record->bytes_model : NAN};
    if (passes_by(record, level))
        return (struct traffic){NAN, NAN};
    const bool flushed =
        level == LEVEL_DRAM && record->config.workload && config_cold(&record->config);
    const double dirty = flushed ? fmax(record->bytes_model - counted, 0) : 0; /* fmax: NaN is 0 */
    return (struct traffic){record->bytes_written[level] + dirty, counted + dirty};
}

static double level_time(const struct device *device, int level, struct traffic traffic)
{
    return traffic.all / device_mix_bandwidth(device, level, traffic.written / traffic.all);
}

/* Returns the level from which modelled bytes come if the cache is hot: the nearest level that
 * holds the footprint. The cores of a CPU divide the tensors, so all caches of a level hold them
 * together. On a GPU only the last cache counts, because blocks move between multiprocessors.
 * LEVEL_COUNT: unknown. */
static int nearest_level(const struct record *record, const struct device *device)
{
    const struct device_kind *kind = device_kind_find(device->kind);
    bool known = false, on_gpu = kind && kind->accelerator;
    /* programs may state only their bytes, which include all tensors */
    double footprint =
        isnan(record->footprint) && !on_gpu ? record->bytes_model : record->footprint;
    if (isnan(footprint))
        return isnan(record->bytes_model) ? LEVEL_COUNT : LEVEL_DRAM;
    for (int level = on_gpu ? LEVEL_L2 : LEVEL_L1; level > LEVEL_DRAM; --level) {
        const bool measured = !isnan(device->working_set[level]);
        known |= !isnan(device->cache[level]);
        if (footprint <= (measured ? device->working_set : device->cache)[level])
            return level;
    }
    return known ? LEVEL_DRAM : LEVEL_COUNT;
}

/* Returns the level of the bandwidth roof; LEVEL_COUNT: unknown. With counted bytes this is the
 * level that needs longest for its bytes, or device memory if no level has a roof. */
static int roof_level(const struct record *record, const struct device *device)
{
    int slowest = LEVEL_DRAM;
    double longest = -1.0;
    if (!bytes_counted(record)) {
        bool known = record->config.workload && !config_cold(&record->config);
        return known ? nearest_level(record, device) : LEVEL_DRAM;
    }
    for (int level = 0; level < LEVEL_COUNT; ++level) {
        double time = level_time(device, level, traffic_of(record, level, level));
        if (time > longest) { /* false for NaN */
            longest = time;
            slowest = level;
        }
    }
    return slowest;
}

/* Returns the time from one empty kernel to the next, s, as a mean over the row's launches. A
 * replayed row launches all kernels by a graph; for a program the trace has the number of kernels
 * launched by graphs. */
static double launch_overhead(const struct record *record, const struct device *device)
{
    const bool replayed = record->config.workload && config_replayed(&record->config);
    const bool known = record->launches_in_graphs > 0; /* false if missing */
    const double traced =
        known ? (double)record->launches_in_graphs / number_of(record->launches) : 0;
    const double graph = replayed ? 1 : traced;
    return (graph > 0 ? graph * device_launch_gap(device, true) : 0) +
           (graph < 1 ? (1 - graph) * device_launch_gap(device, false) : 0);
}

static void roofline_derive(const struct record *record, const struct device *device, double flops,
                            int level, struct derived *derived)
{
    struct traffic own = {NAN, NAN};
    double roof_time = NAN;
    for (int i = 0; i < LEVEL_COUNT; ++i) {
        const struct traffic traffic = traffic_of(record, level, i);
        derived->arithmetic_intensity[i] = traffic.all > 0 ? flops / traffic.all : NAN;
        derived->level_time[i] = level_time(device, i, traffic);
        if (i == level) {
            own = traffic;
            roof_time = derived->level_time[i];
        }
    }
    /* A row without bytes gets the level's best roof. */
    derived->bandwidth_roof = roof_time > 0.0       ? own.all / roof_time
                              : level < LEVEL_COUNT ? device->peak_bandwidth[level]
                                                    : NAN;
    const struct roofline_work work = {.flops = flops,
                                       .bytes = own.all,
                                       .time = own_time(record),
                                       .launches = number_of(record->launches)};
    const struct roofline_roofs roofs = {.peak = derived->compute_roof,
                                         .bandwidth = derived->bandwidth_roof,
                                         .launch_overhead = launch_overhead(record, device)};
    const struct roofline roofline = roofline_evaluate(&work, &roofs);
    derived->roof_fraction = roofline.fraction;
    derived->overhead_time = roofline.overhead_time;
    derived->paper_bound = roofline.bound;
}

/* ---- shares of the time, and the limiter ---- */

/* Shares, 0 to 1. */
struct shares {
    double compute, bandwidth; /* FLOPs, or bytes, at their roofs: share of the row's time */
    double gap;                /* no kernel runs: share of the row's time */
    double few_blocks;         /* kernels with too few blocks: share of the time of all kernels */
    double running;            /* threads run: share of the time of all cores; CPUs only */
    enum limiter idle, rest;   /* the limiter if the gap, or the rest, is the largest part */
};

/* ---- why a kernel reaches no roof ---- */

static const char *const unit_text[ACTIVITY_UNITS] = {
    [ACTIVITY_DRAM] = "device memory",
    [ACTIVITY_L2] = "l2",
    [ACTIVITY_DATA_PIPE] = "data pipe of l1 and shared memory",
    [ACTIVITY_ISSUE] = "issue slots",
    [ACTIVITY_FMA] = "FMA pipe",
    [ACTIVITY_FP64] = "FP64 pipe",
    [ACTIVITY_TENSOR] = "tensor pipe",
};

/* For each reason of a stall: what the threads wait for, and the part of the time. */
static const struct {
    const char *text;
    enum time_part part;
} stalls[ACTIVITY_WAITS] = {
    [ACTIVITY_STALL_BARRIER] = {"other threads at a barrier", TIME_BARRIER},
    [ACTIVITY_STALL_BRANCH_RESOLVING] = {"branches", TIME_INSTRUCTION_FETCH},
    [ACTIVITY_STALL_DISPATCH_STALL] = {"the dispatch of instructions", TIME_OTHER},
    [ACTIVITY_STALL_DRAIN] = {"stores at their end", TIME_OTHER},
    [ACTIVITY_STALL_GMMA] = {"the tensor pipe", TIME_MATH_PIPE},
    [ACTIVITY_STALL_IMC_MISS] = {"constants", TIME_INSTRUCTION_FETCH},
    [ACTIVITY_STALL_LG_THROTTLE] = {"the queue to global memory", TIME_MEMORY_QUEUES},
    [ACTIVITY_STALL_LONG_SCOREBOARD] = {"global memory", TIME_MEMORY_LATENCY},
    [ACTIVITY_STALL_MATH_PIPE_THROTTLE] = {"pipes of arithmetic", TIME_MATH_PIPE},
    [ACTIVITY_STALL_MEMBAR] = {"memory barriers", TIME_OTHER},
    [ACTIVITY_STALL_MIO_THROTTLE] = {"the queue to shared memory", TIME_MEMORY_QUEUES},
    [ACTIVITY_STALL_MISC] = {"other things", TIME_OTHER},
    [ACTIVITY_STALL_NO_INSTRUCTION] = {"instructions", TIME_INSTRUCTION_FETCH},
    [ACTIVITY_STALL_SHORT_SCOREBOARD] = {"shared memory", TIME_DEPENDENCY},
    [ACTIVITY_STALL_SLEEPING] = {"the end of a sleep", TIME_OTHER},
    [ACTIVITY_STALL_TEX_THROTTLE] = {"the queue to textures", TIME_MEMORY_QUEUES},
    [ACTIVITY_STALL_WAIT] = {"the fixed time of instructions", TIME_DEPENDENCY},
};

/* A roof or a unit limits from this share of the time on. */
static const double at_roof = 0.6;
static const double near = 0.05; /* shares that differ by less give both verdicts */

struct cause {
    char words[128], why[CAUSE_TEXT - 130];
};

__attribute__((format(printf, 4, 5))) static void
append(char *text, size_t size, const char *separator, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    used += (size_t)snprintf(text + used, size - used, "%s", used > 0 ? separator : "");
    if (used >= size)
        return;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

#define WORD(cause, word) append((cause)->words, sizeof(cause)->words, ", ", "%s", word)
#define WHY(cause, ...)   append((cause)->why, sizeof(cause)->why, "; ", __VA_ARGS__)

static double largest(const double *activity, int first, int end)
{
    double found = NAN;
    for (int i = first; i < end; ++i)
        found = fmax(found, activity[i]);
    return found;
}

static void units_say(const double *activity, double most, struct cause *cause)
{
    for (int i = 0; i < ACTIVITY_UNITS; ++i)
        if (activity[i] >= at_roof - near && activity[i] >= most - near) {
            WORD(cause, activity_name[i]);
            WHY(cause, "%s %.0f %% busy", unit_text[i], 100 * activity[i]);
        }
}

/* Adds "1 block on a multiprocessor at a time (registers, shared memory)" if the threads of the
 * blocks that fit fill less than half of a multiprocessor. */
static void occupancy_say(const struct kernel *kernel, const struct device *device,
                          struct cause *cause)
{
    double threads = (double)(kernel->block_x * kernel->block_y * kernel->block_z);
    double blocks = (double)kernel->resident / (double)device->multiprocessors;
    char limits[64] = "";
    if (kernel->resident == FIELD_MISSING || device->multiprocessors == FIELD_MISSING ||
        device->multiprocessor_threads == FIELD_MISSING ||
        blocks * threads >= 0.5 * (double)device->multiprocessor_threads)
        return;
    for (int i = 0; kernel->resident_limit != FIELD_MISSING && kernel_limit_name[i]; ++i)
        if (kernel->resident_limit & 1LL << i)
            append(limits, sizeof limits, ", ", "%s", kernel_limit_name[i]);
    WHY(cause, "%.2g block%s on a multiprocessor at a time%s%s%s", blocks, blocks > 1 ? "s" : "",
        *limits ? " (" : "", limits, *limits ? ")" : "");
}

static void latency_say(const struct kernel *kernel, const struct device *device,
                        struct cause *cause)
{
    const double *activity = kernel->activity;
    double longest = largest(activity, ACTIVITY_STALL_BARRIER, ACTIVITY_WAITS);
    WORD(cause, "latency");
    for (int i = ACTIVITY_STALL_BARRIER; i < ACTIVITY_WAITS; ++i)
        if (activity[i] >= fmin(longest, fmax(longest - near, 2 * near)))
            WHY(cause, "%.0f %% of the threads' time they wait for %s (%s)", 100 * activity[i],
                stalls[i].text, activity_name[i] + strlen("stall_"));
    occupancy_say(kernel, device, cause);
}

static void cause_of_kernel(const struct kernel *kernel, const struct device *device,
                            char text[CAUSE_TEXT])
{
    const double most_active = 0.85;
    const double many = 5; /* waves of blocks; the last of five or more is a small part */
    struct cause cause = {"", ""};
    *text = '\0';
    double most = largest(kernel->activity, 0, ACTIVITY_UNITS);
    if (isnan(most))
        return;
    bool idle = kernel->activity[ACTIVITY_MULTIPROCESSORS] < most_active;
    if (most < at_roof)
        latency_say(kernel, device, &cause);
    units_say(kernel->activity, most, &cause);
    if (most >= at_roof && most < at_roof + near)
        latency_say(kernel, device, &cause);
    if (idle) {
        WORD(&cause, "idle");
        WHY(&cause, "multiprocessors without a thread %.0f %% of the time",
            100 * (1 - kernel->activity[ACTIVITY_MULTIPROCESSORS]));
    }
    double waves =
        (double)(kernel->grid_x * kernel->grid_y * kernel->grid_z) / (double)kernel->resident;
    if ((idle || most < at_roof + near) && kernel->resident != FIELD_MISSING &&
        kernel->grid_x != FIELD_MISSING && waves < many)
        WHY(&cause, "%.1f waves of blocks", waves);
    snprintf(text, CAUSE_TEXT, "%s: %s", cause.words, cause.why);
}

/* Writes "WORDS: TEXT": why a record's longest kernel reaches no roof, and the kernel's share of
 * the time of all kernels. "": its activities were not counted. The words are verdicts:
 *
 * - names of units (activity_name) that are at least 60 % busy: the busiest unit, and units within
 *   5 points of it;
 * - "latency" if no unit is at least 60 % busy. From 55 to 65 % both verdicts are given;
 * - "idle" if the multiprocessors have no thread in more than 15 % of the kernel's time, for
 *   example in the last wave of blocks. */
static void cause_write(const struct record *record, const struct device *device,
                        char text[CAUSE_TEXT])
{
    const double all = 0.995;
    const struct kernel *kernel = NULL;
    double time = 0;
    *text = '\0';
    for (size_t i = 0; i < record->kernel_count; ++i) {
        time += record->kernels[i].time;
        if (!kernel || record->kernels[i].time > kernel->time)
            kernel = &record->kernels[i];
    }
    if (kernel)
        cause_of_kernel(kernel, device, text);
    if (*text && kernel->time < all * time)
        append(text, CAUSE_TEXT, "; ", "of the kernel with %.0f %% of the kernels' time",
               100 * kernel->time / time);
}

/* ---- parts of the time, and the limit ---- */

/* Share of the kernel's time in which a multiprocessor has a block. The counted cycles and the
 * traced time come from different runs, so their quotient can exceed 1. */
static double active_share(const struct kernel *kernel)
{
    return fmin(kernel->activity[ACTIVITY_MULTIPROCESSORS], 1); /* NaN gives 1 (fmin) */
}

/* How the kernels of a row divide the time in which at least one of them runs. Each member is a
 * factor for a part of a kernel's own time. */
struct division {
    double elapsed; /* factor for the kernel's whole time */
    double active;  /* factor for the time in which multiprocessors have a block of the kernel */
    double idle;    /* factor for the rest of the kernel's time */
};

/* Overlapping kernels stretch each other, so their times add up to more than `busy` and are scaled.
 * Their active times are not scaled, unless these alone exceed `busy`. */
static struct division divide(const struct record *record, double busy)
{
    double own = 0, active = 0;
    for (size_t i = 0; i < record->kernel_count; ++i) {
        own += record->kernels[i].time;
        active += record->kernels[i].time * active_share(&record->kernels[i]);
    }
    struct division by = {.elapsed = own > busy ? 1 : own > 0 ? busy / own : 0};
    by.active = own > busy ? fmin(1, busy / active) : by.elapsed;
    by.idle = own > active ? (busy - by.active * active) / (own - active) : 0;
    return by;
}

static enum time_part idle_part(const struct kernel *kernel)
{
    const int64_t blocks = derive_kernel(kernel).blocks;
    if (kernel->resident == FIELD_MISSING || blocks == FIELD_MISSING)
        return TIME_OTHER;
    return (double)blocks < full_wave * (double)kernel->resident ? TIME_FEW_BLOCKS
                                                                 : TIME_IDLE_MULTIPROCESSORS;
}

static void kernel_add(const struct kernel *kernel, struct division by,
                       double parts[TIME_PART_COUNT])
{
    const double active = by.active * kernel->time * active_share(kernel);
    const double issuing = active * fmin(kernel->activity[ACTIVITY_ISSUE], 1);
    double waits = 0;
    if (isnan(kernel->activity[ACTIVITY_MULTIPROCESSORS] + kernel->activity[ACTIVITY_ISSUE])) {
        parts[TIME_INSIDE_KERNELS] += active;
        return;
    }
    for (int i = ACTIVITY_STALL_BARRIER; i < ACTIVITY_WAITS; ++i)
        waits += isnan(kernel->activity[i]) ? 0 : kernel->activity[i];
    parts[idle_part(kernel)] += by.idle * kernel->time * (1 - active_share(kernel));
    parts[TIME_ISSUING] += issuing;
    if (waits == 0)
        parts[TIME_OTHER] += active - issuing;
    for (int i = ACTIVITY_STALL_BARRIER; i < ACTIVITY_WAITS && waits > 0; ++i)
        if (!isnan(kernel->activity[i]))
            parts[stalls[i].part] += (active - issuing) * kernel->activity[i] / waits;
}

/* Divides `busy`, the time in which a CPU runs parallel regions, into parts. The record's shares
 * refer to the mean time, which is longer than the median: the difference is taken first from the
 * time off the processor, then from the idle time. An unknown wait counts as 0. */
static void threads_add(const struct record *record, double busy, double roof,
                        double parts[TIME_PART_COUNT])
{
    const double mean = fmax(record->time_mean / record->time_median, 1); /* fmax ignores NaN */
    const double off = fmax(fmax(record->threads_waiting, 0) * mean - (mean - 1), 0);
    const double idle = fmax(1 - record->threads_running * mean - off, 0);
    const double running = (1 - off - idle) * busy;
    parts[TIME_OFF_PROCESSOR] = off * busy;
    parts[TIME_IDLE_THREADS] = idle * busy;
    parts[TIME_AT_ROOF] = fmin(fmax(roof, 0), running);
    parts[TIME_INSIDE_KERNELS] = running - parts[TIME_AT_ROOF];
}

/* Sets the parts of an iteration, in s; their sum is `time`. `gap` is the share of the time without
 * a kernel. All parts are NaN if `gap` is NaN. The time of kernels without activities is the part
 * "inside_kernels". `roof` is the share of the time that the work takes at its nearest roof; on
 * CPUs this time is a part of its own. */
static void time_parts(const struct record *record, double time, double gap, double roof,
                       double parts[TIME_PART_COUNT])
{
    const double busy = (1 - gap) * time;
    for (int i = 0; i < TIME_PART_COUNT; ++i)
        parts[i] = isnan(busy) ? NAN : 0;
    if (isnan(busy))
        return;
    parts[TIME_GAPS] = time - busy;
    if (!isnan(record->host_load)) { /* of a CPU */
        threads_add(record, busy, roof * time, parts);
        return;
    }
    const struct division by = divide(record, busy);
    if (by.elapsed == 0)
        parts[TIME_INSIDE_KERNELS] = busy;
    for (size_t i = 0; i < record->kernel_count; ++i)
        kernel_add(&record->kernels[i], by, parts);
}

static bool is_memory(int unit)
{
    return unit == ACTIVITY_DRAM || unit == ACTIVITY_L2;
}

/* Returns the time in which the unit would do its work at its roof, s; NaN: unknown activity. */
static double unit_time(const struct record *record, int unit, struct division by)
{
    double time = 0;
    for (size_t i = 0; i < record->kernel_count; ++i) {
        const struct kernel *kernel = &record->kernels[i];
        time += (is_memory(unit) ? by.elapsed : by.active * active_share(kernel)) * kernel->time *
                kernel->activity[unit];
    }
    return time;
}

/* Returns the unit that is busiest while the kernel is active. *share: share of the unit's roof; 0:
 * unknown. */
static int kernel_unit(const struct kernel *kernel, double *share)
{
    int busiest = 0;
    *share = 0;
    for (int i = 0; i < ACTIVITY_UNITS; ++i) {
        double own = kernel->activity[i] / (is_memory(i) ? active_share(kernel) : 1);
        busiest = own > *share ? i : busiest;
        *share = fmax(*share, own);
    }
    return busiest;
}

/* The time that a row's FLOPs, or its bytes at a memory level, take at their roof, as a share of
 * the row's time. */
struct roof_share {
    const char *name;
    double share; /* NaN: unknown */
};

/* Possible limits of a row: first the parts of its time, then the units. `share` is a time, s. */
enum { CANDIDATES = TIME_PART_COUNT + ACTIVITY_UNITS };

static const double unit_at_roof = 0.75; /* a unit limits a kernel from this share of its roof on */

/* If a kernel has a unit at its roof, moves the kernel's active time from the parts to the unit.
 * Issuing is work, so it is no candidate. Time without a block counts as few_blocks or as
 * idle_multiprocessors, whichever is more. */
static void candidates_find(const struct record *record, struct division by,
                            struct roof_share all[CANDIDATES])
{
    struct roof_share *idle = all + TIME_FEW_BLOCKS, *less = all + TIME_IDLE_MULTIPROCESSORS, *kept;
    by.idle = 0;
    for (size_t i = 0; i < record->kernel_count; ++i) {
        double own[TIME_PART_COUNT] = {0}, share;
        int unit = kernel_unit(&record->kernels[i], &share);
        kernel_add(&record->kernels[i], by, own);
        for (int j = 0; j < TIME_PART_COUNT && share >= unit_at_roof; ++j) {
            all[j].share -= own[j];
            all[TIME_PART_COUNT + unit].share += own[j];
        }
    }
    all[TIME_ISSUING].share = 0;
    kept = idle->share > less->share ? idle : less;
    kept->share = idle->share + less->share;
    (kept == idle ? less : idle)->share = 0;
}

/* Writes the limit of a row. It is the unit, memory level or roof with the largest share of the
 * time, if this share is at least 80 %: "dram 87 %". Otherwise it is the largest of several times:
 * "memory_latency 46 %". The times are all parts but "issuing", and for each unit the active time
 * of the kernels that use at least 75 % of the unit's roof. The two parts of idle multiprocessors
 * count as one. The two largest times are named if they are within 5 points of each other: "mixed:
 * barrier 31 %, data_pipe 28 %". "": no share is 80 %, and the parts are unknown. */
static void limit_write(const struct record *record, double time, const struct roof_share roofs[2],
                        const double parts[TIME_PART_COUNT], char text[LIMIT_TEXT])
{
    const double most_of_time = 0.8;
    const struct division by = divide(record, time - parts[TIME_GAPS]);
    struct roof_share all[CANDIDATES], most = {NULL, 0}, *first = all, *second;
    for (int i = 0; i < TIME_PART_COUNT; ++i)
        all[i] = (struct roof_share){time_part_name[i], parts[i]};
    for (int i = 0; i < 2; ++i)
        if (roofs[i].share > most.share) /* false for NaN */
            most = roofs[i];
    for (int i = 0; i < ACTIVITY_UNITS; ++i) {
        struct roof_share unit = {activity_name[i], unit_time(record, i, by) / time};
        all[TIME_PART_COUNT + i] = (struct roof_share){activity_name[i], 0};
        most = unit.share > most.share ? unit : most;
    }
    all[TIME_AT_ROOF].name = most.name;
    candidates_find(record, by, all);
    for (struct roof_share *i = all; i < all + CANDIDATES; ++i)
        first = i->share > first->share ? i : first;
    second = all + (first == all);
    for (struct roof_share *i = all; i < all + CANDIDATES; ++i)
        second = i != first && i->share > second->share ? i : second;
    *text = '\0';
    if (most.share >= most_of_time)
        snprintf(text, LIMIT_TEXT, "%s %.0f %%", most.name, 100 * most.share);
    else if (first->share - second->share < near * time)
        snprintf(text, LIMIT_TEXT, "mixed: %s %.0f %%, %s %.0f %%", first->name,
                 100 * first->share / time, second->name, 100 * second->share / time);
    else if (!isnan(first->share))
        snprintf(text, LIMIT_TEXT, "%s %.0f %%", first->name, 100 * first->share / time);
}

/* ---- the limiter ---- */

/* Whether the known shares decide the limiter. A gap above one half is always the largest part.
 * Compute and bandwidth overlap in time, so neither decides if the other is unknown, unless the
 * threads run too little to reach a roof. */
static bool is_decided(const struct shares *shares)
{
    const double half = 0.5;
    const bool roofs = !isnan(shares->compute) && !isnan(shares->bandwidth);
    return (roofs && !isnan(shares->gap)) || shares->gap > half ||
           (roofs && fmax(shares->compute, shares->bandwidth) >= at_roof) ||
           shares->running < at_roof;
}

/* A roof is the limiter if its share is at least at_roof. If the limiter of the rest is unknown, a
 * roof with the largest share is the limiter, too. fmax ignores NaN. */
static enum limiter limiter_of(const struct shares *shares)
{
    double compute = fmax(shares->compute, 0), bandwidth = fmax(shares->bandwidth, 0);
    double explained = fmax(compute, bandwidth), gap = fmax(shares->gap, 0);
    double rest = 1 - gap - explained;
    if (!is_decided(shares))
        return LIMITER_UNKNOWN;
    if (explained >= (shares->rest == LIMITER_UNKNOWN ? fmax(gap, rest) : at_roof))
        return compute >= bandwidth ? LIMITER_COMPUTE : LIMITER_BANDWIDTH;
    if (gap > rest)
        return shares->idle;
    return shares->rest;
}

static void evidence_write(const struct shares *shares, const char *level, struct derived *derived)
{
    const double values[] = {shares->compute, shares->bandwidth, shares->gap, shares->few_blocks};
    char texts[sizeof values / sizeof *values][16];
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i)
        snprintf(texts[i], sizeof texts[i], isnan(values[i]) ? "unknown" : "%.1f %%",
                 100 * values[i]);
    snprintf(
        derived->limiter_evidence, sizeof derived->limiter_evidence,
        "of the time: FLOPs at their roofs %s, bytes at the roof of %s %s, idle between kernels "
        "%s; of the kernels' time without enough parallelism: %s",
        texts[0], level, texts[1], texts[2], texts[3]);
}

/* The gap is the time without kernels. On CPUs it is the traced time minus the time of kernels in
 * the trace, since tracing does not change the work. On accelerators it is the time of a timed
 * iteration minus the time of the traced kernels: the trace of one iteration lacks the gaps between
 * iterations, and the traced run can take a little longer than the timed one. */
static void limiter_derive(const struct record *record, const struct device *device, int level,
                           double compute_time, struct derived *derived)
{
    const double half = 0.5;
    const struct device_kind *kind = device_kind_find(device->kind);
    bool on_gpu = kind && kind->accelerator, traced = kind && !on_gpu && !isnan(record->trace_time);
    double time = own_time(record), whole = traced ? record->trace_time : time;
    double gap = whole - record->busy_time, few_blocks = few_blocks_share(record);
    derived->gap_time = isnan(gap) ? NAN : fmax(gap, 0);
    const struct shares shares = {
        .compute = compute_time / time,
        .bandwidth = level < LEVEL_COUNT ? derived->level_time[level] / time : NAN,
        .gap = derived->gap_time / whole,
        .few_blocks = few_blocks,
        .running = record->threads_running,
        .idle = record->host_paced == 1              ? LIMITER_HOST
                : record->host_paced == 0 || !on_gpu ? LIMITER_OVERHEAD
                                                     : LIMITER_GAPS,
        .rest = on_gpu && isnan(few_blocks) ? LIMITER_UNKNOWN
                : few_blocks > half         ? LIMITER_LATENCY
                                            : LIMITER_KERNEL, /* also on CPUs */
    };
    derived->limiter = limiter_of(&shares);
    time_parts(record, time, shares.gap, fmax(shares.compute, shares.bandwidth),
               derived->time_part);
    const struct roof_share roofs[] = {
        {level < LEVEL_COUNT ? memory_level_name[level] : "", shares.bandwidth},
        {"compute", shares.compute}};
    limit_write(record, time, roofs, derived->time_part, derived->limit);
    if (record->status == RECORD_MEASURED)
        evidence_write(&shares, level < LEVEL_COUNT ? memory_level_name[level] : "no level",
                       derived);
}

/* ---- energy ---- */

/* Returns the energy of the bytes at the energy roofs, J. The energy roof of a level includes all
 * nearer levels, so each byte counts once, at the farthest level that it reaches. A level with
 * unknown traffic adds nothing. */
static double bytes_energy(const struct record *record, const struct device *device, int own)
{
    double energy = 0, farther = NAN;
    for (int level = 0; level < LEVEL_COUNT; ++level) {
        const struct traffic traffic = traffic_of(record, own, level);
        const double beyond = isnan(farther) ? traffic.all : traffic.all - farther;
        if (beyond > 0) /* false for NaN */
            energy += beyond * device_byte_energy(device, level, traffic.written / traffic.all);
        farther = fmax(farther, traffic.all);
    }
    return isnan(farther) ? NAN : energy;
}

static void energy_derive(const struct record *record, const struct device *device, double flops,
                          int level, struct derived *derived)
{
    const double time = isnan(record->energy_time) ? own_time(record) : record->energy_time;
    const double constant = device_constant_power(device) * time;
    const struct units_cost cost = units_cost(record, device, flops, yield_of);
    const double units = flops == 0 ? 0 : cost.vector + cost.tensor;
    derived->energy_at_roofs = constant + units + bytes_energy(record, device, level);
    derived->energy_constant_share = constant / derived->energy_at_roofs;
}

/* ---- a row ---- */

struct derived derive(const struct record *record, const struct device *device)
{
    const struct device_kind *kind = device_kind_find(device->kind);
    int level = roof_level(record, device);
    double flops = isnan(record->flops_counted) ? record->flops_model : record->flops_counted;
    struct derived derived = {
        .sm_clock = kind && kind->accelerator ? device_clock(device, record->sm_clock_counted)
                                              : record->sm_clock,
    };
    bool bytes_known = bytes_counted(record) || !isnan(record->bytes_model);
    if (level < LEVEL_COUNT && bytes_known)
        strcpy(derived.roof_memory_level, memory_level_name[level]);
    double compute_time = units_derive(record, device, flops, &derived);
    roofline_derive(record, device, flops, level, &derived);
    limiter_derive(record, device, level, compute_time, &derived);
    cause_write(record, device, derived.cause);
    energy_derive(record, device, flops, level, &derived);
    return derived;
}

/* ---- marks of a row's time ---- */

static const double too_noisy = 0.05; /* fraction of the median */

double time_uncertainty(const struct record *record)
{
    return (record->time_median_high - record->time_median_low) / 2 / record->time_median;
}

static const struct {
    char mark;
    const char *text;
} meanings[] = {
    {'n', "noisy, the median is known to no better than 5 %"},
    {'h', "the device waited for the host"},
    {'b', "the samples have two modes"},
    {'t', "more than 2 % of a sample is the timer's own time"},
    {'i', "the result is inaccurate, see the variable accuracy"},
    {'c', "a caller in a loop waits for the host, see the variable caller_time"},
    {TIME_PREEMPTED, "preempted, its threads were off the processor for more than 5 % of the time"},
    {'m', "its FLOPs are modelled, although its bytes were counted"},
};

void time_marks(const struct record *record, char marks[TIME_MARKS])
{
    const double noisy = too_noisy, visible = 0.02, apart = 1.05, time = record->time_median;
    double iterations = record->sample_iterations > 0 ? (double)record->sample_iterations : NAN;
    /* A caller who enqueues iterations in a loop waits for the host. The limiter explains the
     * measured time, which has no such wait. */
    bool waits = record->caller_time * (1 - record->caller_uncertainty) > apart * time;
    const int64_t set[] = {time_uncertainty(record) > noisy,
                           record->host_paced,
                           record->bimodal,
                           record->timer_overhead / (time * iterations) > visible,
                           record->accuracy[0] != '\0',
                           waits,
                           record->threads_waiting > noisy,
                           isnan(record->flops_counted) && bytes_counted(record)};
    size_t used = 0;
    for (size_t i = 0; i < sizeof set / sizeof *set; ++i)
        if (set[i] == 1)
            marks[used++] = meanings[i].mark;
    marks[used] = '\0';
}

void time_mark_noise(const struct record *record, char marks[TIME_MARKS])
{
    char others[TIME_MARKS];
    strcpy(others, marks + (marks[0] == 'n'));
    snprintf(marks, TIME_MARKS, "%.1s%.6s", time_uncertainty(record) > too_noisy ? "n" : "",
             others);
}

const char *time_mark_text(char mark)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; ++i)
        if (meanings[i].mark == mark)
            return meanings[i].text;
    return NULL;
}
