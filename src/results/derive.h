/* Values that follow from a record and its device, as the file has them beside the record. Pure:
 * the same inputs give the same values. derive.c explains the rules. */
#pragma once

#include "model/device.h"
#include "model/record.h"
#include "model/roofline.h"
#include "results/cause.h"
#include "results/time_parts.h"

/* A roof that the row reaches for 60 % of its time, or else the largest part of the time beside the
 * roofs: the gap, in which the device idles between kernels, or the rest, in which kernels run
 * below their roofs. (The paper's bound, roofline.h, is the lowest roof instead.) */
enum limiter {
    LIMITER_COMPUTE,   /* a roof: FLOPs take longer */
    LIMITER_BANDWIDTH, /* a roof: bytes take longer */
    LIMITER_LATENCY,   /* rest, more than half of it in kernels with too few blocks */
    LIMITER_KERNEL,    /* rest, in kernels with enough blocks */
    LIMITER_OVERHEAD,  /* gap, although all launches were enqueued */
    LIMITER_HOST,      /* gap, and the device waited for the host within samples */
    LIMITER_UNKNOWN,   /* an unknown part can be the largest, or the rest is and has no trace */
    LIMITER_GAPS       /* gap; whether the device waited for the host is unknown */
};
extern const char *const limiter_name[]; /* "compute", ..., "gaps", NULL */

enum { LIMITER_TEXT = 256 };

/* Derived values of one row. A missing input makes its values missing. */
struct derived {
    double sm_clock;           /* s-1 */
    char roof_memory_level[8]; /* level of the bandwidth roof; "": unknown */
    double arithmetic_intensity[LEVEL_COUNT];
    double performance;             /* s-1, FLOPs: counted, or else modelled */
    double roof_fraction;           /* of 1 */
    double compute_roof;            /* s-1, the roofline's P, at the row's own clock */
    double bandwidth_roof;          /* byte s-1, the roofline's W, at the row's mix of directions */
    double overhead_time;           /* s */
    int64_t paper_bound;            /* enum roofline_bound */
    double gap_time;                /* s, without a kernel, and without the timer's own time */
    double level_time[LEVEL_COUNT]; /* s, the level's bytes at its roof */
    int64_t limiter;                /* enum limiter */
    char limiter_evidence[LIMITER_TEXT];
    char cause[CAUSE_TEXT];
    double time_part[TIME_PART_COUNT]; /* s, their sum is the time of an iteration */
    char limit[LIMIT_TEXT];
    double energy_at_roofs;       /* J, of one iteration */
    double energy_constant_share; /* of 1 */
};
extern const struct field derived_fields[];
struct derived derive(const struct record *record, const struct device *device);

/* The launch shape of a kernel; missing on CPUs. */
struct derived_kernel {
    int64_t blocks;  /* of one launch */
    int64_t threads; /* of one block */
};
extern const struct field derived_kernel_fields[];
struct derived_kernel derive_kernel(const struct kernel *kernel);

/* Half the width of the median's confidence interval, over the median. */
double time_uncertainty(const struct record *record);

enum { TIME_MARKS = 7 };
/* The marks after a time in the table, in this order: 'n' uncertainty above 5 %, 'h' host_paced,
 * 'b' bimodal, 't' timer overhead above 2 %, 'i' inaccurate result, 'c' an ordinary caller takes
 * longer.
 * "": no mark. */
void time_marks(const struct record *record, char marks[TIME_MARKS]);
/* The meaning of a mark; NULL for another letter. */
const char *time_mark_text(char mark);
