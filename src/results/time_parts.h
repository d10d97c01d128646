/* The parts that add up to a row's time, computed from the activities of its kernels, and the row's
 * limit. Pure functions; docs/method.md has the rules. */
#pragma once

#include "model/field.h"
#include "model/record.h"

/* Sets the parts of an iteration, in s; their sum is `time`. `gap` is the share of the time without
 * a kernel. All parts are NaN if `gap` is NaN. The time of kernels without activities is the part
 * "inside_kernels". `at_roof` is the share of the time that the work takes at its nearest roof; on
 * CPUs this time is a part of its own. */
void time_parts(const struct record *record, double time, double gap, double at_roof,
                double parts[TIME_PART_COUNT]);

enum { LIMIT_TEXT = 80 };

/* The time that a row's FLOPs, or its bytes at a memory level, take at their roof, as a share of
 * the row's time. */
struct roof_share {
    const char *name;
    double share; /* NaN: unknown */
};

/* Writes the limit of a row. It is the unit, memory level or roof with the largest share of the
 * time, if this share is at least 80 %: "dram 87 %". Otherwise it is the largest of several times:
 * "memory_latency 46 %". These are all parts but "issuing", and for each unit the active time of
 * the kernels that use it at 75 % of its roof or more. The two parts of idle multiprocessors count
 * as one. The two largest times are named if they are within 5 points of each other: "mixed:
 * barrier 31 %, data_pipe 28 %". "": no share is 80 %, and the parts are unknown. */
void limit_write(const struct record *record, double time, const struct roof_share roofs[2],
                 const double parts[TIME_PART_COUNT], char text[LIMIT_TEXT]);
