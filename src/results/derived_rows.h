/* What the file holds beyond the records themselves, as field tables describe it: for each row of
 * config, and for each kernel. Pure. */
#ifndef ROOFSWEEP_DERIVED_ROWS_H
#define ROOFSWEEP_DERIVED_ROWS_H

#include "results/derive.h"

struct derived_row {
    char roof_memory_level[8];
    double arithmetic_intensity[LEVEL_COUNT];
    double performance, useful_performance, machine_balance, roof, roof_fraction;
    double compute_roof, bandwidth_roof, sustained_fraction, configured_fraction;
    char unit_note[UNIT_NOTE_TEXT];
    double compute_time, bandwidth_time, overhead_time, dependent_time;
    int64_t bound;
    double busy_share, gap_time, gap_share, host_share;
    double compute_roof_time, compute_share;
    double level_time[LEVEL_COUNT], bandwidth_share;
    int64_t zero_flop_launches;
    double zero_flop_share, few_blocks_share;
    int64_t limiter;
    char limiter_evidence[LIMITER_TEXT];
    int64_t flops_source, bytes_source;
    double timer_share, energy_idle_share, search_margin;
    int64_t timer_visible, algorithm_tuned;
    double flops_ratio, bytes_ratio;
};
extern const struct field derived_row_fields[];
struct derived_row derived_row_of(const struct record *record, const struct device *device);

struct derived_kernel {
    int64_t blocks, threads;
    double occupancy, waves, tail_loss;
    int64_t enough_parallelism;
};
extern const struct field derived_kernel_fields[];
struct derived_kernel derived_kernel_of(const struct kernel *kernel, const struct device *device);

#endif
