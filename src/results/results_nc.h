/* Results as one netCDF-4 file (CF-1.11, ACDD-1.3), flat, laid out as in tests/data/golden.cdl.
 *
 * Dimensions config (unlimited), kernel (kernel_config points into config), device, precision,
 * memory_level, sample. Variables come from the field tables of record.h, the parameters from
 * workload.h. Made aside, closed, synced and renamed: PATH is whole or absent. */
#pragma once

#include <stdio.h>

#include "base/file.h"
#include "base/status.h"
#include "results/results.h"

/* The attribute format_version. Rises when a variable gets another name, type or meaning, or one
 * that every file had may be absent. A new variable or attribute alone does not raise it. Files
 * before version 2 have no number. */
enum { RESULTS_NC_VERSION = 3 };

/* Before anything else in a process, before its first thread: tells HDF5 to lock no file. The draft
 * is locked by us, under a name that nobody else knows. */
void results_nc_prepare(void);

/* With `published` NULL a file PATH is replaced, or if that is a link the file that it names; else
 * it stays, and *published is the name that the new one has got (staged_file.h). A variable without
 * a value in any row, device or roof is left out, but for those that every reader needs (enum
 * field_presence).
 *
 * HDF5's own handler at the end of the process crashes once it could not write, which this function
 * may have survived: a program that calls it ends with _exit. */
enum status results_nc_write(const struct results *results, const char *path,
                             char published[LINK_TARGET], struct error *error);

/* Prints all variables that there are, but those of parameters and axes. */
void results_nc_list(FILE *stream);
