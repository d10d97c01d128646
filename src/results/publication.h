/* Publishing: the NetCDF file of what a journal holds, and the table on standard output. */
#pragma once

#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"

/* What a run has produced, in one line for programs. */
struct summary {
    size_t rows[3]; /* by enum record_status */
    size_t devices, roofs;
    size_t left;     /* configurations that have no row yet; SIZE_MAX: not known */
    char file[4096]; /* "": there is none */
};

/* "summary status=0 rows=118 measured=118 skipped=0 failed=0 left=0 devices=8 roofs=240
 * seconds=44.5 file=sweep.nc". status: of the program; seconds: since it began. The file comes
 * last, since it may have blanks. */
enum { SUMMARY_TEXT = 4400 };
void summary_format(const struct summary *summary, int status, double seconds,
                    char text[SUMMARY_TEXT]);

/* Paths; the strings stay the caller's. */
struct publication {
    const char *journal;
    const char *netcdf; /* NULL: the journal's name without its ".journal" */
    bool json;          /* format of the table on standard output */
    bool overwrite;     /* replaces an existing NetCDF file */
    bool skip_damaged;  /* leaves damaged lines of the journal out, and names them */
};

/* *summary is set as soon as the file is there, and only then. STATUS_FAILED if configurations have
 * failed; the file is there then. STATUS_SYSTEM if the journal cannot be read, or the file or the
 * table cannot be written, or if the file has another name because one has appeared that may not be
 * replaced. */
enum status publication_make(const struct publication *publication, const struct log *log,
                             struct summary *summary, struct error *error);

/* The same for --gather: STATUS_USAGE if the file must not be written; STATUS_SYSTEM also if lines
 * of the journal were left out. */
enum status publication_gather(const struct publication *publication, const struct log *log,
                               struct summary *summary, struct error *error);
