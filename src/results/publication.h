/* Publishing: the NetCDF file of what a journal holds, and the table on standard output. */
#ifndef ROOFSWEEP_PUBLICATION_H
#define ROOFSWEEP_PUBLICATION_H

#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "results/summary.h"
#include "results/report.h"

/* Paths; the strings stay the caller's. */
struct publication {
    const char *journal;
    const char *
        joined; /* it has no name for people, and was made of these: "the journals"; NULL: it has */
    const char *netcdf; /* NULL: the journal's name without its ".journal" */
    enum table_format format;
    /* of publication_gather */
    bool overwrite;    /* a NetCDF file that is there */
    bool skip_damaged; /* leave damaged lines of the journal out, and name them */
};

/* *summary is set as soon as the file is there, and only then. STATUS_FAILED if configurations have failed; the file is there then. STATUS_SYSTEM if the journal
 * cannot be read, or the file or the table cannot be written. Whether the file may be replaced is not
 * asked. */
enum status publication_make(const struct publication *publication, const struct log *log,
                             struct summary *summary, struct error *error);

/* The same for --gather: STATUS_USAGE if the file must not be written; STATUS_SYSTEM also if lines of
 * the journal were left out. */
enum status publication_gather(const struct publication *publication, const struct log *log,
                               struct summary *summary, struct error *error);

#endif
