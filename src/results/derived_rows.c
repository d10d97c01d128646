#include "results/derived_rows.h"

#include <stdio.h>
#include <string.h>

#include "model/parallelism.h"
#include "results/sampling.h"

static const char *const no_yes[] = {"no", "yes", NULL};

#define R(member, type, units, long_name) FIELD(struct derived_row, member, type, units, long_name)
const struct field derived_row_fields[] = {
    R(arithmetic_intensity, FIELD_LEVELS, "byte-1", "arithmetic intensity: FLOPs per byte"),
    R(roof_memory_level, FIELD_TEXT, "1", "memory level of the bandwidth roof"),
    R(performance, FIELD_DOUBLE, "s-1", "performance: FLOP/s"),
    R(useful_performance, FIELD_DOUBLE, "s-1", "performance in FLOPs of the definition: FLOP/s"),
    R(machine_balance, FIELD_DOUBLE, "byte-1", "machine balance: compute roof over bandwidth roof"),
    R(roof, FIELD_DOUBLE, "s-1", "lowest roof at this arithmetic intensity: FLOP/s"),
    R(roof_fraction, FIELD_DOUBLE, "1", "fraction of the roof that was reached"),
    R(compute_roof, FIELD_DOUBLE, "s-1", "compute roof at the row's own clock: FLOP/s"),
    R(bandwidth_roof, FIELD_DOUBLE, "byte s-1", "bandwidth roof of the row's mix of directions"),
    R(sustained_fraction, FIELD_DOUBLE, "1",
      "fraction of the compute roof once the clock has settled"),
    R(configured_fraction, FIELD_DOUBLE, "1",
      "fraction of the highest compute roof of the configured precision"),
    R(unit_note, FIELD_TEXT, "1", "whether vector units did what tensor units exist for"),
    R(compute_time, FIELD_DOUBLE, "s", "compute time of the time-based Roofline"),
    R(bandwidth_time, FIELD_DOUBLE, "s", "bandwidth time of the time-based Roofline"),
    R(overhead_time, FIELD_DOUBLE, "s", "launch overhead of one iteration"),
    R(dependent_time, FIELD_DOUBLE, "s",
      "launch overhead of one iteration if each kernel waits for the last one's result"),
    FIELD_OF_FLAGS(struct derived_row, bound, roofline_bound_name,
                   "what bounds the run time, by the time-based Roofline"),
    R(busy_share, FIELD_DOUBLE, "1", "share of the time in which kernels ran"),
    R(gap_time, FIELD_DOUBLE, "s", "time in which the device was idle between kernels"),
    R(gap_share, FIELD_DOUBLE, "1", "share of the time in which the device was idle"),
    R(host_share, FIELD_DOUBLE, "1", "host time to enqueue an iteration over its time"),
    R(compute_roof_time, FIELD_DOUBLE, "s", "time that the FLOPs would take at their units' roofs"),
    R(compute_share, FIELD_DOUBLE, "1", "share of the time that the FLOPs would take"),
    R(level_time, FIELD_LEVELS, "s", "time that a memory level's bytes would take at its roof"),
    R(bandwidth_share, FIELD_DOUBLE, "1", "share of the time that the bytes would take"),
    R(zero_flop_launches, FIELD_INTEGER, "1", "launches of kernels that do no FLOPs"),
    R(zero_flop_share, FIELD_DOUBLE, "1", "share of the kernels' time in kernels that do no FLOPs"),
    R(few_blocks_share, FIELD_DOUBLE, "1",
      "share of the kernels' time in kernels without enough parallelism"),
    FIELD_OF_FLAGS(struct derived_row, limiter, limiter_name,
                   "what limits the time, by measured shares"),
    R(limiter_evidence, FIELD_TEXT, "1", "the shares that limiter follows from"),
    FIELD_OF_FLAGS(struct derived_row, flops_source, source_name, "where the FLOPs come from"),
    FIELD_OF_FLAGS(struct derived_row, bytes_source, source_name, "where the bytes come from"),
    R(timer_share, FIELD_DOUBLE, "1", "share of timer_overhead in a sample"),
    FIELD_OF_FLAGS(struct derived_row, timer_visible, no_yes,
                   "timer_overhead is more than 2 % of a sample"),
    R(energy_idle_share, FIELD_DOUBLE, "1",
      "share of the energy that the device would have used without the work"),
    R(search_margin, FIELD_DOUBLE, "1", "how much slower the search's runner-up was"),
    FIELD_OF_FLAGS(struct derived_row, algorithm_tuned, no_yes,
                   "the search changed the algorithm from the library's own first choice"),
    R(flops_ratio, FIELD_DOUBLE, "1", "counted over modelled FLOPs"),
    R(bytes_ratio, FIELD_DOUBLE, "1", "counted over modelled bytes of device memory"),
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

#define K(member, type, long_name) FIELD(struct derived_kernel, member, type, "1", long_name)
const struct field derived_kernel_fields[] = {
    K(blocks, FIELD_INTEGER, "blocks of one launch"),
    K(threads, FIELD_INTEGER, "threads of one block"),
    K(occupancy, FIELD_DOUBLE, "occupancy: threads on a full device over the most that it holds"),
    K(waves, FIELD_DOUBLE, "waves of blocks"),
    K(tail_loss, FIELD_DOUBLE, "share of all waves that the last one leaves empty"),
    FIELD_OF_FLAGS(struct derived_kernel, enough_parallelism, no_yes,
                   "enough blocks to fill the device"),
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
