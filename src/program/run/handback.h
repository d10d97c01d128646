/* What a program hands back: lines in files of a folder that the environment names, one file for
 * each process, which has any name. sweeps/programs/roofsweep_region.py writes them.
 *
 *   region SECONDS               one region of the program, by the clock that it looked at
 *   verify ERROR TOLERANCE       relative error of its result, and the largest that is right */
#pragma once

#include <stddef.h>

#include "base/status.h"
#include "program/run/scratch.h"

#define HANDBACK_VARIABLE "ROOFSWEEP_REPORT" /* of the environment: the folder */
enum { HANDBACK_REGIONS_MAX = 100000 };

struct handback {
    double *regions; /* owned; s, in the order of each file */
    size_t region_count;
    double verify_error, verify_tolerance; /* NaN where none was handed back; else the worst */
};

/* STATUS_FAILED: a line means nothing, or a file is no regular one. */
enum status handback_read(const struct scratch *folder, struct handback *handback,
                          struct error *error);
void handback_clear(struct handback *handback);
