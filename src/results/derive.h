/* What follows from a record and the device that it was measured on: pure, nothing is measured
 * here. */
#ifndef ROOFSWEEP_DERIVE_H
#define ROOFSWEEP_DERIVE_H

#include "model/device.h"
#include "model/record.h"
#include "model/roofline.h"

/* Where a derived value's FLOPs and bytes come from. */
enum source { SOURCE_COUNTED, SOURCE_MODELLED, SOURCE_NONE };
extern const char *const source_name[]; /* "counted", "modelled", "none", NULL */

/* A record on its device's roofs. Counted values are used where they exist; of counted bytes, those
 * of the memory level that needs longest for them at its measured bandwidth. Modelled bytes are
 * compulsory traffic, so they are set against the level that they must come from: with a hot cache
 * the last-level cache if it holds the whole footprint and its roof was measured, otherwise device
 * memory. (Nearer caches are private to a core, so none of them holds the whole.) */
struct derived {
    struct roofline roofline;
    double compute_roof;   /* s-1, at the row's own clock (compute_roof.h): roofline's P */
    double bandwidth_roof; /* byte s-1, of the row's own mix of directions (level_time.h): its W */
    double sustained_fraction;     /* of the compute roof once the clock has settled */
    enum memory_level level;       /* of roofline's bytes and bandwidth */
    double intensity[LEVEL_COUNT]; /* NaN where the bytes are not known */
    enum source flops_source, bytes_source;
};
struct derived derive(const struct record *record, const struct device *device);

#endif
