/* Writes results as one netCDF-4 file (CF-1.11, ACDD-1.3), flat, laid out as tests/data/golden.cdl.
 *
 * Dimensions config (unlimited), kernel (kernel_config points into config), device, precision,
 * memory_level, sample. Variables come from the field tables of record.h, parameters from
 * workload.h. */
#pragma once

#include <stdio.h>

#include "base/file.h"
#include "base/status.h"
#include "results/results.h"

/* The attribute format_version. It rises when a variable gets another name, type or meaning, or
 * when a variable of all files becomes optional. New variables and attributes do not raise it. */
enum { RESULTS_NC_VERSION = 3 };

/* Tells HDF5 to lock no file: nobody else knows the draft's name. Call first in a process, before
 * its first thread. */
void results_nc_prepare(void);

/* Writes PATH, which is whole or absent. `published` NULL: replaces a file PATH, or the file that a
 * link PATH names. Otherwise keeps an existing PATH, and *published is the name that the new file
 * got (staged_file.h). Variables without a value in any row, device or roof are left out, except
 * those of PRESENT_ALWAYS. A process of its own writes the file, as netCDF can crash. */
enum status results_nc_write(const struct results *results, const char *path,
                             char published[LINK_TARGET], struct error *error);

/* Prints all variables except those of parameters and axes. */
void results_nc_list(FILE *stream);
