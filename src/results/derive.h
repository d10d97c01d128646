/* What follows from a record and the device that it was measured on: pure, nothing is measured
 * here. */
#ifndef ROOFSWEEP_DERIVE_H
#define ROOFSWEEP_DERIVE_H

#include "model/device.h"
#include "model/limiter.h"
#include "model/record.h"
#include "model/roofline.h"
#include "results/kernel_shares.h"
#include "results/unit_use.h"

/* Where a derived value's FLOPs and bytes come from. */
enum source { SOURCE_COUNTED, SOURCE_MODELLED, SOURCE_NONE };
extern const char *const source_name[]; /* "counted", "modelled", "none", NULL */

/* A record on its device's roofs. Counted values are used where they exist; of counted bytes, those
 * of the memory level that needs longest for them at its measured bandwidth. Modelled bytes are
 * compulsory traffic, so they are set against the level that they must come from: with a hot cache
 * the last-level cache if its working set (or, not measured, its capacity) is as large as the
 * footprint, otherwise device memory. (Nearer caches are
 * private to a core, so none of them holds the whole.) Where that level has no measured roof, what
 * needs one is missing: no other level stands in for it. */
struct derived {
    struct roofline roofline; /* the paper's */
    double compute_roof;      /* s-1, at the row's own clock (unit_use.h): roofline's P */
    double bandwidth_roof; /* byte s-1, of the row's own mix of directions (level_time.h): its W */
    double sustained_fraction;     /* of the compute roof once the clock has settled */
    enum memory_level level;       /* of roofline's bytes and bandwidth; LEVEL_COUNT: not known */
    double intensity[LEVEL_COUNT]; /* NaN where the bytes are not known */
    enum source flops_source, bytes_source;
    double useful_performance; /* s-1, modelled FLOPs over the time */
    double gap_time;           /* s, of the time without the timer's own, what no kernel ran in */
    double dependent_time;     /* s, so many small kernels that need each other's results */
    struct unit_use units;
    double
        level_time[LEVEL_COUNT]; /* s, the level's bytes at its roof; modelled: of `level` alone */
    double busy_share;           /* of the time; the others are in `shares` */
    struct limiter_shares shares;
    struct kernel_shares kernels;
    enum limiter limiter;
    char limiter_evidence[LIMITER_TEXT];
};
struct derived derive(const struct record *record, const struct device *device);

/* "" where it is not known. */
const char *derived_level_name(const struct derived *derived);

#endif
