/* Results as one netCDF-4 file (CF-1.11, ACDD-1.3), flat, laid out as in tests/data/golden.cdl.
 *
 * Dimensions config (unlimited), kernel (kernel_config points into config), device, precision,
 * memory_level, sample. Variables come from the field tables of record.h, the parameters from
 * workload.h. Made aside, closed, synced and renamed: PATH is whole or absent. */
#ifndef ROOFSWEEP_RESULTS_NC_H
#define ROOFSWEEP_RESULTS_NC_H

#include "results/results.h"
#include "base/status.h"

/* Before anything else in a process, before its first thread: tells HDF5 to lock no file. The draft is
 * locked by us, under a name that nobody else knows. */
void results_nc_prepare(void);

/* Replaces PATH if it exists: whether it may is decided before anything is measured. If PATH is a
 * link, the file that it names is replaced.
 *
 * HDF5's own handler at the end of the process crashes once it could not write, which this function
 * may have survived: a program that calls it ends with _exit. */
enum status results_nc_write(const struct results *results, const char *path, struct error *error);

#endif
