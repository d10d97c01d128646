/* Values that are computed from a record and its device, and written to the file with the record.
 * Pure functions: the same inputs give the same values. derive.c explains the rules. */
#pragma once

#include "model/device.h"
#include "model/record.h"
#include "model/roofline.h"

/* The limiter of a row is a roof if the work at this roof fills at least 60 % of the row's time.
 * Otherwise it is the larger of two parts of the time: the gap, in which the device idles between
 * kernels, or the rest, in which kernels run below their roofs. (The paper's bound, roofline.h,
 * is the lowest roof instead.) */
enum limiter {
    LIMITER_COMPUTE,   /* the compute roof: the FLOPs take longer than the bytes */
    LIMITER_BANDWIDTH, /* the bandwidth roof: the bytes take longer than the FLOPs */
    LIMITER_LATENCY,   /* the rest, mostly in kernels with too few blocks */
    LIMITER_KERNEL,    /* the rest, mostly in kernels with enough blocks */
    LIMITER_OVERHEAD,  /* the gap, although all launches were enqueued in advance */
    LIMITER_HOST,      /* the gap, and the device waited for the host during samples */
    LIMITER_UNKNOWN,   /* a part that may be the largest is unknown, or the rest is the largest part
                          and no trace shows its blocks */
    LIMITER_GAPS       /* the gap; whether the device waited for the host is unknown */
};
extern const char *const limiter_name[]; /* "compute", ..., "gaps", NULL */

enum { LIMITER_TEXT = 256, CAUSE_TEXT = 768, LIMIT_TEXT = 80 };

/* Derived values of one row. A value is missing if one of its inputs is missing. */
struct derived {
    double sm_clock;                          /* s-1 */
    char roof_memory_level[8];                /* level of the bandwidth roof; "": unknown */
    double arithmetic_intensity[LEVEL_COUNT]; /* FLOPs per byte */
    double performance;             /* FLOPs per second: counted FLOPs, or else modelled ones */
    double roof_fraction;           /* fraction of the roof, 0 to 1 */
    double compute_roof;            /* s-1, the roofline's P, at the row's own clock */
    double bandwidth_roof;          /* byte s-1, the roofline's W, for the row's reads and writes */
    double overhead_time;           /* s; launch overhead of one iteration */
    int64_t paper_bound;            /* enum roofline_bound */
    double gap_time;                /* s, time without a kernel, less the timer's own time */
    double level_time[LEVEL_COUNT]; /* s; time of the level's bytes at the level's roof */
    int64_t limiter;                /* enum limiter */
    char limiter_evidence[LIMITER_TEXT];
    char cause[CAUSE_TEXT];
    double time_part[TIME_PART_COUNT]; /* s; the parts add up to the time of an iteration */
    char limit[LIMIT_TEXT];
    double energy_at_roofs;       /* J, of one iteration at the roofs */
    double energy_constant_share; /* constant power's share of energy_at_roofs, 0 to 1 */
};
extern const struct field derived_fields[];
struct derived derive(const struct record *record, const struct device *device);

/* The launch shape of a kernel; missing on CPUs. */
struct derived_kernel {
    int64_t blocks;  /* number of blocks of one launch */
    int64_t threads; /* number of threads of one block */
};
extern const struct field derived_kernel_fields[];
struct derived_kernel derive_kernel(const struct kernel *kernel);

/* Half the width of the median's confidence interval, divided by the median. */
double time_uncertainty(const struct record *record);

enum { TIME_MARKS = 9 };
enum { TIME_PREEMPTED = 'p' };
/* Sets the marks after a time in the table, one letter each (time_mark_text); "": none. */
void time_marks(const struct record *record, char marks[TIME_MARKS]);
/* Adds or removes the mark 'n' according to the record's confidence interval. */
void time_mark_noise(const struct record *record, char marks[TIME_MARKS]);
/* Returns the meaning of a mark; NULL for another letter. */
const char *time_mark_text(char mark);
