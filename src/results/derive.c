#include "results/derive.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/device_kind.h"

static const char *const no_yes[] = {"no", "yes", NULL};
static const char *const source_name[] = {"counted", "modelled", "none", NULL};
const char *const limiter_name[] = {"compute",  "bandwidth", "latency", "kernel",
                                    "overhead", "host",      "unknown", NULL};

#define R(member, type, units, ...)                                                                \
    FIELD(struct derived, member, type, units, __VA_ARGS__, .origin = FIELD_DERIVED)
#define F(member, flags, ...)                                                                      \
    FIELD_OF_FLAGS(struct derived, member, flags, __VA_ARGS__, .origin = FIELD_DERIVED)
const struct field derived_fields[] = {
    R(arithmetic_intensity, FIELD_LEVELS, "byte-1", "arithmetic intensity: FLOPs per byte",
      .comment = "with flops_source and bytes_source; modelled bytes are set against "
                 "roof_memory_level alone"),
    R(roof_memory_level, FIELD_TEXT, "1", "memory level of the bandwidth roof",
      .comment = "of counted bytes: the level that needs longest for its own; of modelled bytes: "
                 "dram if caches are flushed or the footprint is larger than device_working_set "
                 "of the last-level cache (where that was not measured, than the cache), else "
                 "that cache. Where that level has no measured roof, what needs one is missing"),
    R(performance, FIELD_DOUBLE, "s-1", "performance: FLOP/s", .comment = "FLOPs / time_median"),
    R(useful_performance, FIELD_DOUBLE, "s-1", "performance in FLOPs of the definition: FLOP/s",
      .comment = "flops_model / time_median; performance has what was counted"),
    R(machine_balance, FIELD_DOUBLE, "byte-1", "machine balance: compute roof over bandwidth roof"),
    R(roof, FIELD_DOUBLE, "s-1", "lowest roof at this arithmetic intensity: FLOP/s",
      .comment = "least of compute_roof, arithmetic_intensity x bandwidth_roof and FLOPs / "
                 "overhead_time, of the row's precision and unit, on its own device"),
    R(roof_fraction, FIELD_DOUBLE, "1", "fraction of the roof that was reached",
      .comment = "performance / roof; of pure data movement, bytes / time_median / bandwidth"),
    R(compute_roof, FIELD_DOUBLE, "s-1", "compute roof at the row's own clock: FLOP/s",
      .comment = "FLOPs over compute_roof_time, so of the row's mix of units: the device's FLOPs "
                 "for each cycle (device_cycle_vector, device_cycle_tensor) times "
                 "sm_clock_counted; without either, device_peak_vector or device_peak_tensor"),
    R(bandwidth_roof, FIELD_DOUBLE, "byte s-1", "bandwidth roof of the row's mix of directions",
      .comment = "at roof_memory_level: bytes over the longest of read / device_read_bandwidth, "
                 "written / device_write_bandwidth and all / device_peak_bandwidth; of modelled "
                 "bytes the last alone"),
    R(sustained_fraction, FIELD_DOUBLE, "1",
      "fraction of the compute roof once the clock has settled", ON_ACCELERATOR,
      .comment = "performance / device_sustained_vector or device_sustained_tensor"),
    R(configured_fraction, FIELD_DOUBLE, "1",
      "fraction of the highest compute roof of the configured precision",
      .comment = "performance over the highest compute roof of config_precision, of whatever "
                 "unit the device has, at the row's clock"),
    R(unit_note, FIELD_TEXT, "1", "whether vector units did what tensor units exist for",
      .needs = NEEDS_COUNTERS),
    R(compute_time, FIELD_DOUBLE, "s", "compute time of the time-based Roofline",
      .comment = "time_median if the intensity is at least the balance, else scaled by their "
                 "ratio"),
    R(bandwidth_time, FIELD_DOUBLE, "s", "bandwidth time of the time-based Roofline",
      .comment = "time_median if the intensity is below the balance, else scaled by their ratio"),
    R(overhead_time, FIELD_DOUBLE, "s", "launch overhead of one iteration",
      .comment = "launches times device_launch_overhead; of launch = graph, times the roof "
                 "launch gap graph"),
    R(dependent_time, FIELD_DOUBLE, "s",
      "launch overhead of one iteration if each kernel waits for the last one's result",
      ON_ACCELERATOR, .comment = "launches times device_launch_dependent"),
    F(bound, roofline_bound_name, "what bounds the run time, by the time-based Roofline",
      .flags_known = true,
      .comment = "overhead if FLOPs / compute_roof and bytes / bandwidth_roof are both below "
                 "overhead_time, which is then the lowest roof; limiter goes by measured shares "
                 "instead"),
    R(busy_share, FIELD_DOUBLE, "1", "share of the time in which kernels ran",
      .comment = "busy_time over time_median - timer_overhead / sample_iterations; of CPUs over "
                 "trace_time, which is of the same run; of programs over time_median"),
    R(gap_time, FIELD_DOUBLE, "s", "time in which the device was idle between kernels",
      .comment = "time_median - timer_overhead / sample_iterations - busy_time, at least 0; of "
                 "CPUs trace_time - busy_time; of programs time_median - busy_time"),
    R(gap_share, FIELD_DOUBLE, "1", "share of the time in which the device was idle",
      .comment = "gap_time over the same time as busy_share"),
    R(host_share, FIELD_DOUBLE, "1", "host time to enqueue an iteration over its time",
      ON_ACCELERATOR,
      .comment = "host_time over time_median - timer_overhead / sample_iterations; above 1 an "
                 "ordinary caller would see the host's pace"),
    R(compute_roof_time, FIELD_DOUBLE, "s", "time that the FLOPs would take at their units' roofs",
      .comment = "sum over units and precisions of their FLOPs over their own compute roof at "
                 "the row's clock; a part below 1 % of the FLOPs may lack a roof"),
    R(compute_share, FIELD_DOUBLE, "1", "share of the time that the FLOPs would take",
      .comment = "compute_roof_time over time_median - timer_overhead / sample_iterations; of "
                 "programs over time_median"),
    R(level_time, FIELD_LEVELS, "s", "time that a memory level's bytes would take at its roof",
      .comment = "as of bandwidth_roof, of each level; of modelled bytes at roof_memory_level "
                 "alone"),
    R(bandwidth_share, FIELD_DOUBLE, "1", "share of the time that the bytes would take",
      .comment = "level_time at roof_memory_level over the same time as compute_share"),
    R(zero_flop_launches, FIELD_INTEGER, "1", "launches of kernels that do no FLOPs",
      .needs = NEEDS_COUNTERS, .comment = "missing unless the FLOPs of each kernel are known"),
    R(zero_flop_share, FIELD_DOUBLE, "1", "share of the kernels' time in kernels that do no FLOPs",
      .needs = NEEDS_COUNTERS,
      .comment = "of the kernels' own times; missing unless the FLOPs of each kernel are known"),
    R(few_blocks_share, FIELD_DOUBLE, "1",
      "share of the kernels' time in kernels without enough parallelism", ON_ACCELERATOR,
      .comment = "of the kernels' own times, in those without kernel_enough_parallelism"),
    F(limiter, limiter_name, "what limits the time, by measured shares", .flags_known = true,
      .comment = "host if host_share is above 1; else the largest of gap, roofs and rest, see "
                 "method.md"),
    R(limiter_evidence, FIELD_TEXT, "1", "the shares that limiter follows from"),
    F(flops_source, source_name, "where the FLOPs come from", .flags_known = true),
    F(bytes_source, source_name, "where the bytes come from", .flags_known = true),
    R(timer_share, FIELD_DOUBLE, "1", "share of timer_overhead in a sample",
      .comment = "timer_overhead / (sample_iterations x time_median); it is subtracted in "
                 "gap_time and the shares of the time"),
    F(timer_visible, no_yes, "timer_overhead is more than 2 % of a sample"),
    R(energy_idle_share, FIELD_DOUBLE, "1",
      "share of the energy that the device would have used without the work", .needs = NEEDS_ENERGY,
      .comment = "idle_power x energy_time / energy"),
    R(search_margin, FIELD_DOUBLE, "1", "how much slower the search's runner-up was",
      ON_ACCELERATOR,
      .comment = "runner_up_time / search_time - 1; below search_noise the choice is luck"),
    F(algorithm_tuned, no_yes,
      "the search changed the algorithm from the library's own first choice", ON_ACCELERATOR,
      .comment = "algorithm_id is not heuristic_id"),
    R(flops_ratio, FIELD_DOUBLE, "1", "counted over modelled FLOPs", .needs = NEEDS_COUNTERS,
      .comment = "a library's algorithm may do fewer FLOPs than the definition, or more by "
                 "padding to tiles"),
    R(bytes_ratio, FIELD_DOUBLE, "1", "counted over modelled bytes of device memory",
      .needs = NEEDS_COUNTERS),
    {0},
};

#define K(member, type, ...)                                                                       \
    FIELD(struct derived_kernel, member, type, "1", __VA_ARGS__, .origin = FIELD_DERIVED)
const struct field derived_kernel_fields[] = {
    K(blocks, FIELD_INTEGER, "blocks of one launch", ON_ACCELERATOR),
    K(threads, FIELD_INTEGER, "threads of one block", ON_ACCELERATOR),
    K(occupancy, FIELD_DOUBLE, "occupancy: threads on a full device over the most that it holds",
      ON_ACCELERATOR,
      .comment = "threads of resident blocks over what the multiprocessors hold at most"),
    K(waves, FIELD_DOUBLE, "waves of blocks", ON_ACCELERATOR,
      .comment = "kernel_blocks / kernel_resident"),
    K(tail_loss, FIELD_DOUBLE, "share of all waves that the last one leaves empty", ON_ACCELERATOR,
      .comment = "1 - waves / ceil(waves)"),
    FIELD_OF_FLAGS(
        struct derived_kernel, enough_parallelism, no_yes, "enough blocks to fill the device",
        .origin = FIELD_DERIVED, ON_ACCELERATOR,
        .comment = "at least 4 blocks for each multiprocessor, and threads as if each of these had "
                   "128"),
    {0},
};

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

/* At least 4 blocks for each multiprocessor, and threads as if each had 128: more blocks may be
 * smaller. (128 are a group of 32 for each of a multiprocessor's four schedulers.) */
static int64_t enough_of(int64_t blocks, int64_t threads, const struct device *device)
{
    const int64_t blocks_each = 4, threads_each = 128;
    if (blocks == FIELD_MISSING || threads == FIELD_MISSING ||
        device->multiprocessors == FIELD_MISSING)
        return FIELD_MISSING;
    int64_t least = blocks_each * device->multiprocessors;
    return blocks >= least && blocks * threads >= least * threads_each;
}

struct derived_kernel derive_kernel(const struct kernel *kernel, const struct device *device)
{
    const double group = 32; /* threads that are scheduled together */
    int64_t blocks = product(kernel->grid_x, kernel->grid_y, kernel->grid_z);
    int64_t threads = product(kernel->block_x, kernel->block_y, kernel->block_z);
    double resident = number_of(kernel->resident), waves = number_of(blocks) / resident;
    double most = number_of(device->multiprocessors) * number_of(device->multiprocessor_threads);
    return (struct derived_kernel){
        .blocks = blocks,
        .threads = threads,
        .occupancy = resident * group * ceil(number_of(threads) / group) / most,
        .waves = waves,
        .tail_loss = 1 - waves / ceil(waves),
        .enough_parallelism = enough_of(blocks, threads, device),
    };
}

/* What kernels share a row's time by. Missing where there is no trace, or a kernel lacks what
 * decides. FLOPs of a kernel are known where each was counted; or of all together, if there is one
 * kernel or they are 0. */
static void kernels_derive(const struct record *record, const struct device *device,
                           struct derived *derived)
{
    double time = 0, idle = 0, few = 0;
    int64_t launches = 0;
    bool flops_known = record->kernel_count > 0, blocks_known = flops_known;
    bool whole = record->kernel_count == 1 || record->flops_counted == 0;
    for (size_t i = 0; i < record->kernel_count; ++i) {
        const struct kernel *kernel = &record->kernels[i];
        bool of_all = isnan(kernel->flops_counted) && whole;
        double flops = of_all ? record->flops_counted : kernel->flops_counted;
        int64_t enough = derive_kernel(kernel, device).enough_parallelism;
        flops_known &= !isnan(flops);
        blocks_known &= enough != FIELD_MISSING;
        time += kernel->time;
        launches += flops == 0 ? kernel->count : 0;
        idle += flops == 0 ? kernel->time : 0;
        few += enough == 0 ? kernel->time : 0;
    }
    derived->zero_flop_launches = flops_known ? launches : FIELD_MISSING;
    derived->zero_flop_share = flops_known ? idle / time : NAN;
    derived->few_blocks_share = blocks_known ? few / time : NAN;
}

/* ---- FLOPs and the units that did them ---- */

/* NaN of no unit and no precision. */
static double rate_of(const double vector[PRECISION_COUNT], const double tensor[PRECISION_COUNT],
                      int64_t unit, enum precision precision)
{
    if ((unit != UNIT_VECTOR && unit != UNIT_TENSOR) || precision == PRECISION_COUNT)
        return NAN;
    return (unit == UNIT_VECTOR ? vector : tensor)[precision];
}

/* s-1: what a unit could do at the row's own clock. Power and heat let a short row have another
 * clock than a roof, which loads the device for longer. For each cycle both are equal: so the roof
 * is FLOPs for each cycle, as the device's best roof of that unit and precision had them, times the
 * clock that the row's multiprocessors counted meanwhile. Where either is missing, the roof at its
 * own clock. */
static double peak_of(const struct record *record, const struct device *device, int64_t unit,
                      enum precision precision)
{
    double own = rate_of(device->cycle_vector, device->cycle_tensor, unit, precision) *
                 record->sm_clock_counted;
    return isnan(own) ? rate_of(device->peak_vector, device->peak_tensor, unit, precision) : own;
}

/* s. A part of less than 1 % of the FLOPs may lack a peak and then counts as nothing; any other
 * that lacks one makes this NaN. */
static double part_time(double part, double peak, double all)
{
    const double negligible = 0.01;
    if (isnan(part) || part == 0)
        return 0;
    return isnan(peak) && part < negligible * all ? 0 : part / peak;
}

/* s, the sum over units and precisions of their FLOPs over their own roof. int8 operations are no
 * FLOPs. */
static double parts_time(const struct record *record, const struct device *device, double flops)
{
    double time = 0;
    for (int i = 0; i < PRECISION_COUNT; ++i)
        if (i != PRECISION_INT8)
            time +=
                part_time(record->flops_vector[i], peak_of(record, device, UNIT_VECTOR, i), flops) +
                part_time(record->flops_tensor[i], peak_of(record, device, UNIT_TENSOR, i), flops);
    return time;
}

static double sum_of(const double values[PRECISION_COUNT])
{
    double sum = NAN;
    for (int i = 0; i < PRECISION_COUNT; ++i)
        if (i != PRECISION_INT8 && !isnan(values[i]))
            sum = isnan(sum) ? values[i] : sum + values[i];
    return sum;
}

/* Without counts the FLOPs are those of record->unit in the configured precision. */
static void units_derive(const struct record *record, const struct device *device, double flops,
                         struct derived *derived)
{
    enum precision precision =
        record->config.workload ? config_precision(&record->config) : PRECISION_COUNT;
    double by_vector = sum_of(record->flops_vector);
    bool apart = !isnan(record->flops_counted) && !isnan(by_vector);
    double own = peak_of(record, device, record->unit, precision);
    double vector = peak_of(record, device, UNIT_VECTOR, precision);
    double tensor = peak_of(record, device, UNIT_TENSOR, precision);
    double vector_share = apart                         ? by_vector / flops
                          : record->unit == UNIT_VECTOR ? 1
                          : record->unit == UNIT_TENSOR ? 0
                                                        : NAN;
    derived->performance = flops / record->time_median;
    derived->compute_roof_time = apart ? parts_time(record, device, flops) : flops / own;
    derived->compute_roof = flops > 0 ? flops / derived->compute_roof_time : own;
    derived->configured_fraction = derived->performance / fmax(vector, tensor);
    derived->sustained_fraction =
        derived->performance /
        rate_of(device->sustained_vector, device->sustained_tensor, record->unit, precision);
    if (vector_share > 0.5 && tensor > vector)
        snprintf(
            derived->unit_note, sizeof derived->unit_note,
            "vector units did %.1f %% of the FLOPs; the roof of the tensor units is %.1f times "
            "as high",
            100 * vector_share, tensor / vector);
}

/* ---- bytes and the memory levels that moved them ---- */

/* What is moved at a level, byte. Directions that are not known are NaN; `all` is then enough. */
struct traffic {
    double read, written, all;
};

static bool bytes_counted(const struct record *record)
{
    return !isnan(record->bytes_counted[LEVEL_DRAM]);
}

/* Modelled bytes are those of the row's own level, and nobody knows their directions. */
static struct traffic traffic_of(const struct record *record, int own, int level)
{
    if (bytes_counted(record))
        return (struct traffic){record->bytes_read[level], record->bytes_written[level],
                                record->bytes_counted[level]};
    return (struct traffic){NAN, NAN, level == own ? record->bytes_model : NAN};
}

/* s, the shortest time in which a level can move it. A level has a roof for each direction and one
 * for both together, and none may be exceeded. (An L2 may do 9.5 TB/s of loads, 4.9 of stores, and
 * 12.1 of both at once.) A roof that was not measured limits nothing: fmax passes over a NaN. NaN
 * if none of them and its bytes are known. */
static double level_time(const struct device *device, int level, struct traffic traffic)
{
    double one_way = fmax(traffic.read / device->read_bandwidth[level],
                          traffic.written / device->write_bandwidth[level]);
    return fmax(one_way, traffic.all / device->peak_bandwidth[level]);
}

/* Only a cache that all cores share can hold the footprint as a whole: a device's last one. (The l1
 * of a GPU and the l1 and l2 of a CPU with an l3 are many small ones.) */
static int shared_level(const struct record *record, const struct device *device)
{
    enum memory_level cache = isnan(device->cache[LEVEL_L3]) ? LEVEL_L2 : LEVEL_L3;
    if (isnan(record->footprint)) /* a program that states its bytes alone */
        return isnan(record->bytes_model) ? LEVEL_COUNT : LEVEL_DRAM;
    if (isnan(device->cache[cache]))
        return LEVEL_COUNT;
    double holds = device->working_set[cache];
    if (isnan(holds))
        holds = device->cache[cache];
    return record->footprint <= holds ? (int)cache : LEVEL_DRAM;
}

/* The level whose bytes are set against its bandwidth; LEVEL_COUNT: not known. Of counted bytes the
 * one that needs longest for its own, which is the lowest of the bandwidth roofs; device memory,
 * without a roof, if no level has one. */
static int roof_level(const struct record *record, const struct device *device)
{
    int slowest = LEVEL_DRAM;
    double longest = -1.0;
    if (!bytes_counted(record)) {
        bool known = record->config.workload && !config_cold(&record->config);
        return known ? shared_level(record, device) : LEVEL_DRAM;
    }
    for (int level = 0; level < LEVEL_COUNT; ++level) {
        double time = level_time(device, level, traffic_of(record, level, level));
        if (time > longest) { /* not so for a NaN */
            longest = time;
            slowest = level;
        }
    }
    return slowest;
}

static void roofline_derive(const struct record *record, const struct device *device, double flops,
                            int level, struct derived *derived)
{
    struct traffic own = {NAN, NAN, NAN};
    double own_time = NAN;
    for (int i = 0; i < LEVEL_COUNT; ++i) {
        const struct traffic traffic = traffic_of(record, level, i);
        derived->arithmetic_intensity[i] = flops / traffic.all;
        derived->level_time[i] = level_time(device, i, traffic);
        if (i == level) {
            own = traffic;
            own_time = derived->level_time[i];
        }
    }
    /* Of no bytes at all the best roof. */
    derived->bandwidth_roof = own_time > 0.0        ? own.all / own_time
                              : level < LEVEL_COUNT ? device->peak_bandwidth[level]
                                                    : NAN;
    bool graph = record->config.workload && config_replayed(&record->config);
    const struct roofline_work work = {.flops = flops,
                                       .bytes = own.all,
                                       .time = record->time_median,
                                       .launches = number_of(record->launches)};
    const struct roofline_roofs roofs = {.peak = derived->compute_roof,
                                         .bandwidth = derived->bandwidth_roof,
                                         .launch_overhead = device_launch_gap(device, graph)};
    const struct roofline roofline = roofline_evaluate(&work, &roofs);
    derived->machine_balance = roofline.balance;
    derived->roof = roofline.roof;
    derived->roof_fraction = roofline.fraction;
    derived->compute_time = roofline.compute_time;
    derived->bandwidth_time = roofline.bandwidth_time;
    derived->overhead_time = roofline.overhead_time;
    derived->bound = roofline.bound;
}

/* ---- shares of the time, and what limits it ---- */

/* s, of an iteration without what the timer adds to it. Programs have no timer. */
static double own_time(const struct record *record)
{
    const double timer = record->timer_overhead / number_of(record->sample_iterations);
    return isnan(timer) ? record->time_median : record->time_median - timer;
}

/* A known part above one half is the largest, whatever the unknown ones are. But compute and
 * bandwidth go on at the same time: one of them says nothing without the other. */
static bool is_decided(const struct derived *shares)
{
    const double half = 0.5;
    const bool roofs = !isnan(shares->compute_share) && !isnan(shares->bandwidth_share);
    return (roofs && !isnan(shares->gap_share)) || shares->gap_share > half ||
           (roofs && fmax(shares->compute_share, shares->bandwidth_share) > half);
}

/* fmax passes over a NaN. */
enum limiter limiter_of(const struct derived *shares)
{
    const double half = 0.5;
    double compute = fmax(shares->compute_share, 0), bandwidth = fmax(shares->bandwidth_share, 0);
    double explained = fmax(compute, bandwidth), gap = fmax(shares->gap_share, 0);
    double rest = 1 - gap - explained;
    if (shares->host_share > 1)
        return LIMITER_HOST;
    if (!is_decided(shares))
        return LIMITER_UNKNOWN;
    if (gap > fmax(explained, rest))
        return LIMITER_OVERHEAD;
    if (rest > explained)
        return isnan(shares->few_blocks_share)   ? LIMITER_UNKNOWN
               : shares->few_blocks_share > half ? LIMITER_LATENCY
                                                 : LIMITER_KERNEL;
    return compute >= bandwidth ? LIMITER_COMPUTE : LIMITER_BANDWIDTH;
}

static void percent_format(double share, char text[16])
{
    if (isnan(share))
        snprintf(text, 16, "unknown");
    else
        snprintf(text, 16, "%.1f %%", 100 * share);
}

static void evidence_write(const char *level, struct derived *derived)
{
    const double shares[] = {derived->compute_share, derived->bandwidth_share, derived->gap_share,
                             derived->host_share, derived->few_blocks_share};
    char texts[sizeof shares / sizeof *shares][16];
    for (size_t i = 0; i < sizeof shares / sizeof *shares; ++i)
        percent_format(shares[i], texts[i]);
    snprintf(
        derived->limiter_evidence, sizeof derived->limiter_evidence,
        "of the time: FLOPs at their roofs %s, bytes at the roof of %s %s, idle between kernels "
        "%s, host %s; of the kernels' time without enough parallelism: %s",
        texts[0], level, texts[1], texts[2], texts[3], texts[4]);
}

/* Kernels and gaps are the parts of a time. What CPUs trace is the work as it is: there the traced
 * run itself tells, of both. Accelerators have gaps between iterations, which no trace of one
 * shows; their trace is a run of its own, which may be a little longer than the time. */
static void limiter_derive(const struct record *record, const struct device *device, int level,
                           struct derived *derived)
{
    const struct device_kind *kind = device_kind_find(device->kind);
    bool traced = kind && !kind->accelerator && !isnan(record->trace_time);
    double time = own_time(record), whole = traced ? record->trace_time : time;
    double gap = whole - record->busy_time;
    derived->gap_time = isnan(gap) ? NAN : fmax(gap, 0);
    derived->busy_share = record->busy_time / whole;
    derived->gap_share = derived->gap_time / whole;
    derived->host_share = record->host_time / time;
    derived->compute_share = derived->compute_roof_time / time;
    derived->bandwidth_share = level < LEVEL_COUNT ? derived->level_time[level] / time : NAN;
    derived->limiter = limiter_of(derived);
    if (record->status == RECORD_MEASURED)
        evidence_write(level < LEVEL_COUNT ? memory_level_name[level] : "no level", derived);
}

/* ---- a row ---- */

static enum source source_of(double counted, double modelled)
{
    if (!isnan(counted))
        return SOURCE_COUNTED;
    return isnan(modelled) ? SOURCE_NONE : SOURCE_MODELLED;
}

/* Of the timer's own time in a sample of the median time. */
static double timer_share(const struct record *record)
{
    double iterations = record->sample_iterations > 0 ? (double)record->sample_iterations : NAN;
    return record->timer_overhead / (record->time_median * iterations);
}

static int64_t timer_visible(const struct record *record)
{
    const double visible = 0.02;
    double share = timer_share(record);
    return isnan(share) ? FIELD_MISSING : share > visible;
}

struct derived derive(const struct record *record, const struct device *device)
{
    int level = roof_level(record, device);
    bool counted = !isnan(record->flops_counted);
    double flops = counted ? record->flops_counted : record->flops_model;
    /* Names tell nothing: one algorithm has several, and one name stands for several algorithms. */
    bool searched = record->algorithm_id[0] && record->heuristic_id[0];
    struct derived derived = {
        .flops_source = source_of(record->flops_counted, record->flops_model),
        .bytes_source = source_of(record->bytes_counted[LEVEL_DRAM], record->bytes_model),
        .useful_performance = record->flops_model / record->time_median,
        .dependent_time = number_of(record->launches) * device->launch_dependent,
        .timer_share = timer_share(record),
        .timer_visible = timer_visible(record),
        .energy_idle_share = record->idle_power * record->energy_time / record->energy,
        .search_margin = record->runner_up_time / record->search_time - 1.0,
        .algorithm_tuned =
            searched ? strcmp(record->algorithm_id, record->heuristic_id) != 0 : FIELD_MISSING,
        .flops_ratio = record->flops_counted / record->flops_model,
        .bytes_ratio = record->bytes_counted[LEVEL_DRAM] / record->bytes_model,
    };
    if (level < LEVEL_COUNT && derived.bytes_source != SOURCE_NONE)
        strcpy(derived.roof_memory_level, memory_level_name[level]);
    kernels_derive(record, device, &derived);
    units_derive(record, device, flops, &derived);
    roofline_derive(record, device, flops, level, &derived);
    limiter_derive(record, device, level, &derived);
    return derived;
}

/* ---- what may be said of a row's time, by how it was taken ---- */

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
};

void time_marks(const struct record *record, char marks[TIME_MARKS])
{
    const double noisy = 0.05;
    const int64_t set[] = {time_uncertainty(record) > noisy, record->host_paced, record->bimodal,
                           timer_visible(record), record->accuracy[0] != '\0'};
    size_t used = 0;
    for (size_t i = 0; i < sizeof set / sizeof *set; ++i)
        if (set[i] == 1)
            marks[used++] = meanings[i].mark;
    marks[used] = '\0';
}

const char *time_mark_text(char mark)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; ++i)
        if (meanings[i].mark == mark)
            return meanings[i].text;
    return NULL;
}
