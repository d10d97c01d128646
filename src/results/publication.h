/* Publishing: a journal becomes the NetCDF file, and the report on standard output. */
#pragma once

#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "manifest/plan.h"

/* The results of a run in numbers. */
struct summary {
    size_t rows[3]; /* by enum record_status */
    size_t devices, roofs;
    size_t left;     /* configurations without a row; SIZE_MAX: unknown */
    char file[4096]; /* the NetCDF file; "": none */
};

/* "summary status=0 rows=118 measured=118 skipped=0 failed=0 left=0 devices=8 roofs=240
 * seconds=44.5 file=sweep.nc", a line for programs. `status` is the program's exit status,
 * `seconds` its time so far. The file comes last, as its name may have blanks. */
enum { SUMMARY_TEXT = 4400 };
void summary_format(const struct summary *summary, int status, double seconds,
                    char text[SUMMARY_TEXT]);

/* Strings stay the caller's. */
struct publication {
    const char *journal;
    const struct plan *plan; /* NULL: of the last session's manifest */
    const char *netcdf;      /* path; NULL: the journal's without ".journal" */
    bool json;               /* format of the table on standard output */
    bool overwrite;          /* replaces an existing NetCDF file */
    bool skip_damaged;       /* leaves damaged lines of the journal out, and names them */
};

/* *summary is set once the file exists. STATUS_FAILED: configurations failed, and the file exists.
 * STATUS_SYSTEM: the journal cannot be read, the file or the table cannot be written, or lines were
 * left out; or the file got another name, because a file appeared that must not be replaced. */
enum status publication_make(const struct publication *publication, const struct log *log,
                             struct summary *summary, struct error *error);

/* publication_make for --gather, after a check of the paths. STATUS_USAGE: the journal is none, or
 * the file must not be written. */
enum status publication_gather(const struct publication *publication, const struct log *log,
                               struct summary *summary, struct error *error);
