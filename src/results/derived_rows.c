#include "results/derived_rows.h"

#include <stdio.h>
#include <string.h>

#include "model/parallelism.h"
#include "results/sampling.h"

static const char *const no_yes[] = {"no", "yes", NULL};

#define R(member, type, units, ...)                                                                \
    FIELD(struct derived_row, member, type, units, __VA_ARGS__, .origin = FIELD_DERIVED)
#define F(member, flags, ...)                                                                      \
    FIELD_OF_FLAGS(struct derived_row, member, flags, __VA_ARGS__, .origin = FIELD_DERIVED)
const struct field derived_row_fields[] = {
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

static void texts_set(const struct record *record, const struct derived *derived,
                      struct derived_row *row)
{
    if (derived->bytes_source != SOURCE_NONE)
        snprintf(row->roof_memory_level, sizeof row->roof_memory_level, "%s",
                 derived_level_name(derived));
    snprintf(row->unit_note, sizeof row->unit_note, "%s", derived->units.note);
    snprintf(row->limiter_evidence, sizeof row->limiter_evidence, "%s",
             record->status == RECORD_MEASURED ? derived->limiter_evidence : "");
}

/* Names tell nothing: one algorithm has several, and one name stands for several algorithms. */
static int64_t algorithm_tuned(const struct record *record)
{
    bool known = record->algorithm_id[0] && record->heuristic_id[0];
    return known ? strcmp(record->algorithm_id, record->heuristic_id) != 0 : FIELD_MISSING;
}

struct derived_row derived_row_of(const struct record *record, const struct device *device)
{
    const struct derived derived = derive(record, device);
    const struct roofline *roofline = &derived.roofline;
    const struct sampling sampling = sampling_derive(record);
    struct derived_row row = {
        .performance = roofline->performance,
        .useful_performance = derived.useful_performance,
        .machine_balance = roofline->balance,
        .roof = roofline->roof,
        .roof_fraction = roofline->fraction,
        .compute_roof = derived.compute_roof,
        .bandwidth_roof = derived.bandwidth_roof,
        .sustained_fraction = derived.sustained_fraction,
        .configured_fraction = roofline->performance / derived.units.configured,
        .compute_time = roofline->compute_time,
        .bandwidth_time = roofline->bandwidth_time,
        .overhead_time = roofline->overhead_time,
        .dependent_time = derived.dependent_time,
        .bound = roofline->bound,
        .busy_share = derived.busy_share,
        .gap_time = derived.gap_time,
        .gap_share = derived.shares.gap,
        .host_share = derived.shares.host,
        .compute_roof_time = derived.units.time,
        .compute_share = derived.shares.compute,
        .bandwidth_share = derived.shares.bandwidth,
        .zero_flop_launches = derived.kernels.zero_flop_launches,
        .zero_flop_share = derived.kernels.zero_flop_share,
        .few_blocks_share = derived.kernels.few_blocks,
        .limiter = derived.limiter,
        .flops_source = derived.flops_source,
        .bytes_source = derived.bytes_source,
        .timer_share = sampling.timer_share,
        .timer_visible = sampling.timer_visible,
        .energy_idle_share = sampling.idle_share,
        .search_margin = record->runner_up_time / record->search_time - 1.0,
        .algorithm_tuned = algorithm_tuned(record),
        .flops_ratio = record->flops_counted / record->flops_model,
        .bytes_ratio = record->bytes_counted[LEVEL_DRAM] / record->bytes_model,
    };
    memcpy(row.arithmetic_intensity, derived.intensity, sizeof row.arithmetic_intensity);
    memcpy(row.level_time, derived.level_time, sizeof row.level_time);
    texts_set(record, &derived, &row);
    return row;
}

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

struct derived_kernel derived_kernel_of(const struct kernel *kernel, const struct device *device)
{
    const struct parallelism parallelism = parallelism_of(kernel, device);
    return (struct derived_kernel){
        .blocks = parallelism.blocks,
        .threads = parallelism.threads,
        .occupancy = parallelism.occupancy,
        .waves = parallelism.waves,
        .tail_loss = parallelism.tail_loss,
        .enough_parallelism = parallelism.enough,
    };
}
