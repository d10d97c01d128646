/* What follows from a record and the device that it was measured on, as the file has it beside
 * them. Pure: nothing is measured here, and the same values always give the same.
 *
 * Counted values are used where they exist; of counted bytes, those of the memory level that needs
 * longest for them at its measured bandwidth. Modelled bytes are compulsory traffic, so they are
 * set against the level that they must come from: with a hot cache the last-level cache if its
 * working set (or, not measured, its capacity) is as large as the footprint, otherwise device
 * memory. (Nearer caches are private to a core, so none of them holds the whole.) Where that level
 * has no measured roof, what needs one is missing: no other level stands in for it. */
#pragma once

#include "model/device.h"
#include "model/record.h"
#include "model/roofline.h"
#include "results/cause.h"

/* What limits a row: its time, split by what was measured of it. The time of an iteration is what
 * the device idles between kernels (gap), what the work would need at its roofs (the longer of
 * compute and bandwidth), and the rest: kernels that ran below their roofs. The largest part
 * limits. The paper's bound (roofline.h) asks another question: which roof is the lowest. */
enum limiter {
    LIMITER_COMPUTE,   /* what the work would need; the longer of the two */
    LIMITER_BANDWIDTH, /* the same */
    LIMITER_LATENCY,   /* the rest, most of it in kernels without enough parallelism */
    LIMITER_KERNEL,    /* the rest, where the kernels had enough to do: they reach no roof */
    LIMITER_OVERHEAD,  /* the gap */
    LIMITER_HOST,      /* the gap, where the device waited for the host within the samples */
    /* A part is not known that might be the largest: one of compute and bandwidth says nothing
     * without the other. Or the rest is the largest, and nobody knows whether the kernels had
     * enough to do. */
    LIMITER_UNKNOWN
};
extern const char *const limiter_name[]; /* "compute", ..., "unknown", NULL */

enum { LIMITER_TEXT = 256 };

/* What the limiter follows from: of the row's time what the FLOPs and the bytes would take at their
 * roofs, and the gap; of the kernels' time that of kernels without enough parallelism. */
struct shares {
    double compute, bandwidth, gap, few_blocks;
    bool host_paced;
};
enum limiter limiter_of(const struct shares *shares);

/* A row of the file; what is missing in record or device makes missing what needs it. What follows
 * from these in a line is computed by readers. */
struct derived {
    double sm_clock;           /* s-1 */
    char roof_memory_level[8]; /* of the bandwidth roof; "": not known */
    double arithmetic_intensity[LEVEL_COUNT];
    double performance; /* s-1, FLOPs as counted, failing that as modelled */
    double roof_fraction;
    double compute_roof;   /* s-1, the roofline's P, at the row's own clock */
    double bandwidth_roof; /* byte s-1, its W, of the row's own mix of directions */
    double overhead_time;  /* s */
    int64_t paper_bound;   /* enum roofline_bound */
    double gap_time;       /* s, of the time without the timer's own, what no kernel ran in */
    double level_time[LEVEL_COUNT]; /* s, the level's bytes at its roof */
    int64_t limiter;                /* enum limiter */
    char limiter_evidence[LIMITER_TEXT];
    char cause[CAUSE_TEXT];
    double energy_at_roofs; /* J, of an iteration: constant power x time + FLOPs + bytes */
    double energy_constant_share;
};
extern const struct field derived_fields[];
struct derived derive(const struct record *record, const struct device *device);

/* The shape of a kernel; missing on CPUs. */
struct derived_kernel {
    int64_t blocks, threads; /* of one launch; of one block */
};
extern const struct field derived_kernel_fields[];
struct derived_kernel derive_kernel(const struct kernel *kernel);

/* Half the width of the median's confidence interval, over the median. */
double time_uncertainty(const struct record *record);

enum { TIME_MARKS = 7 };
/* After a time in the table: 'n' noisy, an uncertainty above 5 %, 'h' host_paced, 'b' bimodal, 't'
 * the timer's own time above 2 %, 'i' an inaccurate result, 'c' a slower caller, in this order; ""
 * for a time that is as it should be. */
void time_marks(const struct record *record, char marks[TIME_MARKS]);
/* What a mark means; NULL for another letter. */
const char *time_mark_text(char mark);
