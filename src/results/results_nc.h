/* Writes results as one netCDF-4 file (CF-1.11, ACDD-1.3) without groups; tests/data/golden.cdl
 * shows its layout. Variables come from tables of fields and from the parameters of workloads. */
#pragma once

#include <stdio.h>

#include "base/file.h"
#include "base/status.h"
#include "results/results.h"

/* The attribute format_version. Raise it when a variable changes its name, type or meaning, or when
 * a variable that all files have becomes optional; not for new variables and attributes. */
enum { RESULTS_NC_VERSION = 3 };

/* Tells HDF5 not to lock files, since only this process knows the draft's name. Call this before
 * the process has a second thread. */
void results_nc_prepare(void);

/* Writes `path`; the file is complete or absent. If `published` is NULL, replaces an existing file,
 * or the target of a link. Otherwise keeps an existing file and sets *published to the name of the
 * new file (staged_file.h). Leaves out variables that have no value in any row, device or roof,
 * unless they are PRESENT_ALWAYS. A child process writes the file, because netCDF can crash. */
enum status results_nc_write(const struct results *results, const char *path,
                             char published[LINK_TARGET], struct error *error);

/* Prints all variables except those of parameters and axes. */
void results_nc_list(FILE *stream);
