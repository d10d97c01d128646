/* The report of a program: lines in files of a folder that the environment names. Each process
 * writes a file of any name, as sweeps/programs/roofsweep_region.py does.
 *
 *   region SECONDS            time of one region, by the program's clock
 *   verify ERROR TOLERANCE    relative error of its result, and the largest right one */
#pragma once

#include <stddef.h>

#include "base/status.h"
#include "program/run/scratch.h"

#define HANDBACK_VARIABLE "ROOFSWEEP_REPORT" /* of the environment: the folder */
enum { HANDBACK_REGIONS_MAX = 100000 };

struct handback {
    double *regions; /* owned; s, in the order of each file */
    size_t region_count;
    double verify_error, verify_tolerance; /* the worst result; NaN: none was reported */
};

/* STATUS_FAILED: an unknown line, or a file that is not a regular one. */
enum status handback_read(const struct scratch *folder, struct handback *handback,
                          struct error *error);
void handback_clear(struct handback *handback);
