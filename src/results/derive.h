/* What follows from a record and the device that it was measured on, as the file has it beside
 * them. Pure: nothing is measured here, and the same values always give the same.
 *
 * Counted values are used where they exist; of counted bytes, those of the memory level that needs
 * longest for them at its measured bandwidth. Modelled bytes are compulsory traffic, so they are
 * set against the level that they must come from: with a hot cache the last-level cache if its
 * working set (or, not measured, its capacity) is as large as the footprint, otherwise device
 * memory. (Nearer caches are private to a core, so none of them holds the whole.) Where that level
 * has no measured roof, what needs one is missing: no other level stands in for it. */
#ifndef ROOFSWEEP_DERIVE_H
#define ROOFSWEEP_DERIVE_H

#include "model/device.h"
#include "model/record.h"
#include "model/roofline.h"

/* Where a derived value's FLOPs and bytes come from. */
enum source { SOURCE_COUNTED, SOURCE_MODELLED, SOURCE_NONE };

/* What limits a row: its time, split by what was measured of it. The time of an iteration is what
 * the device idles between kernels (gap), what the work would need at its roofs (the longer of
 * compute and bandwidth), and the rest: kernels that ran below their roofs. The largest part
 * limits. The paper's `bound` (roofline.h) asks another question: which roof is the lowest. */
enum limiter {
    LIMITER_COMPUTE,   /* what the work would need; the longer of the two */
    LIMITER_BANDWIDTH, /* the same */
    LIMITER_LATENCY,   /* the rest, most of it in kernels without enough parallelism */
    LIMITER_KERNEL,    /* the rest, where the kernels had enough to do: they reach no roof */
    LIMITER_OVERHEAD,  /* the gap */
    LIMITER_HOST,      /* before all others: the host needs longer to enqueue the iteration than the
                        * device to run it, so that a caller would see the host's pace */
    /* A part is not known that might be the largest: one of compute and bandwidth says nothing
     * without the other. Or the rest is the largest, and nobody knows whether the kernels had
     * enough to do. */
    LIMITER_UNKNOWN
};
extern const char *const limiter_name[]; /* "compute", ..., "unknown", NULL */

enum { UNIT_NOTE_TEXT = 128, LIMITER_TEXT = 256 };

/* A row of the file; what is missing in record or device makes missing what needs it. */
struct derived {
    char roof_memory_level[8]; /* of the bandwidth roof; "": not known */
    double arithmetic_intensity[LEVEL_COUNT];
    double performance, useful_performance; /* s-1, FLOPs as counted; as modelled */
    double machine_balance, roof, roof_fraction;
    double compute_roof;   /* s-1, the roofline's P, at the row's own clock */
    double bandwidth_roof; /* byte s-1, its W, of the row's own mix of directions */
    double sustained_fraction, configured_fraction;
    char unit_note[UNIT_NOTE_TEXT];
    double compute_time, bandwidth_time, overhead_time, dependent_time; /* s */
    int64_t bound;                                                      /* enum roofline_bound */
    double gap_time; /* s, of the time without the timer's own, what no kernel ran in */
    double busy_share, gap_share, host_share, compute_share, bandwidth_share; /* of the time */
    double compute_roof_time;       /* s, the FLOPs at the roofs of their units */
    double level_time[LEVEL_COUNT]; /* s, the level's bytes at its roof */
    int64_t zero_flop_launches;
    double zero_flop_share, few_blocks_share; /* of the kernels' time */
    int64_t limiter;                          /* enum limiter */
    char limiter_evidence[LIMITER_TEXT];
    int64_t flops_source, bytes_source; /* enum source */
    double timer_share, energy_idle_share, search_margin;
    int64_t timer_visible, algorithm_tuned;
    double flops_ratio, bytes_ratio;
};
extern const struct field derived_fields[];
struct derived derive(const struct record *record, const struct device *device);

/* From compute_share, bandwidth_share, gap_share, host_share and few_blocks_share. */
enum limiter limiter_of(const struct derived *shares);

/* How a kernel fills a device. Missing where the kernel's shape or the device is not known: on
 * CPUs.
 *
 * Source of waves, tail and the rule: the vendor's "GPU Performance Background User's Guide": a
 * wave is the blocks that run at the same time; the last one may be small ("tail effect");
 * parallelism is likely enough with at least about 4 blocks for each multiprocessor, of a few
 * hundred threads each. */
struct derived_kernel {
    int64_t blocks, threads; /* of one launch; of one block */
    double occupancy;        /* threads on a full multiprocessor, in whole 32s, over its most */
    double waves;            /* blocks over those that the device holds at a time */
    double tail_loss; /* share of places that stays empty in all waves: 1 - waves / ceil(waves) */
    int64_t enough_parallelism; /* 1: by the guide's rule */
};
extern const struct field derived_kernel_fields[];
struct derived_kernel derive_kernel(const struct kernel *kernel, const struct device *device);

/* Half the width of the median's confidence interval, over the median. */
double time_uncertainty(const struct record *record);

enum { TIME_MARKS = 6 };
/* Behind a time in the table: 'n' noisy, an uncertainty above 5 %, 'h' host_paced, 'b' bimodal, 't'
 * timer_visible, 'i' an inaccurate result, in this order; "" for a time that is as it should be. */
void time_marks(const struct record *record, char marks[TIME_MARKS]);
/* What a mark means; NULL for another letter. */
const char *time_mark_text(char mark);

#endif
