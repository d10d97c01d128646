/* Parts that add up to a row's time, from activities of its kernels, and the limit that follows
 * from them. Pure functions; docs/method.md has the rules. */
#pragma once

#include "model/field.h"
#include "model/record.h"

/* s, parts of an iteration that takes `time`; their sum is `time`. `gap`: share of the time without
 * a kernel. All are NaN without a gap or kernels. Kernels without activities are "inside_kernels".
 */
void time_parts(const struct record *record, double time, double gap,
                double parts[TIME_PART_COUNT]);

enum { LIMIT_TEXT = 80 };

/* Share of the time that a row takes at a roof: of its FLOPs, or of its bytes at a memory level. */
struct roof_share {
    const char *name;
    double share; /* NaN: unknown */
};

/* The unit, level or roof with the largest share of the time, if it is at least 80 %: "dram 87 %".
 * Else the largest part: "memory_latency 46 %". Parts within 5 points of each other: "mixed: tail
 * 31 %, issuing 28 %". "" without parts and such a roof. */
void limit_write(const struct record *record, double time, const struct roof_share roofs[2],
                 const double parts[TIME_PART_COUNT], char text[LIMIT_TEXT]);
