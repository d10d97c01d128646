/* Makes the NetCDF file of a journal, and prints the report to standard output. */
#pragma once

#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "manifest/plan.h"

/* Numbers of the results of a run. */
struct summary {
    size_t rows[3]; /* number of rows for each enum record_status */
    size_t devices, roofs;
    size_t left;     /* number of configurations without a row; SIZE_MAX: unknown */
    char file[4096]; /* the NetCDF file; "": no file was written */
};

/* Formats a line that programs read: "summary status=0 rows=118 measured=118 skipped=0 failed=0
 * left=0 devices=8 roofs=240 seconds=44.5 file=sweep.nc". `status` is roofsweep's exit status,
 * `seconds` its time so far. The file comes last, because its name may have blanks. */
enum { SUMMARY_TEXT = 4400 };
void summary_format(const struct summary *summary, int status, double seconds,
                    char text[SUMMARY_TEXT]);

/* Input and options of publication_make. The caller owns the data behind the pointers. */
struct publication {
    const char *journal;
    const char *source;      /* file that is read in place of `journal`; NULL: `journal` itself */
    const struct plan *plan; /* NULL: the plan of the last session's manifest */
    const char *netcdf;      /* path of the file; NULL: the journal's path without ".journal" */
    bool json;               /* format of the table on standard output */
    bool overwrite;          /* replaces an existing NetCDF file */
    struct wait_limit patience; /* limit of the wait for the reader of standard output */
    bool skip_damaged;          /* leaves out damaged lines of the journal, and reports them */
};

/* Sets *summary as soon as the file exists. STATUS_FAILED: configurations failed; the file exists.
 * STATUS_SYSTEM: the journal cannot be read; the file or the report cannot be written; damaged
 * lines were left out; or another process created the file, so the results are in another one. */
enum status publication_make(const struct publication *publication, const struct log *log,
                             struct summary *summary, struct error *error);

/* Checks the paths of --gather and calls publication_make. STATUS_USAGE: the input is no journal,
 * or the file must not be written. */
enum status publication_gather(const struct publication *publication, const struct log *log,
                               struct summary *summary, struct error *error);
