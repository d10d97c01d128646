/* The two files that a sweep writes, OUTPUT and OUTPUT.journal, and what may happen to older ones. */
#ifndef ROOFSWEEP_OUTPUTS_H
#define ROOFSWEEP_OUTPUTS_H

#include <stdbool.h>

#include "journal.h"
#include "log.h"
#include "results.h"
#include "status.h"

struct outputs {
    char netcdf[4096], journal[4096 + 8]; /* paths */
    bool resume, overwrite;
};

/* Names the files. STATUS_USAGE, before anything is measured, if there are older ones and it was not said
 * what is to become of them, or if the folder does not exist or cannot be written to. Changes nothing. */
enum status outputs_check(const char *path, bool resume, bool overwrite, struct outputs *outputs,
                          struct error *error);

/* Opens the journal; removes older files where overwriting was asked for. */
enum status outputs_open(const struct outputs *outputs, struct journal **journal,
                         struct error *error);

/* With resume, what the journal holds; otherwise, or if there is none yet, empty results. STATUS_USAGE if it
 * was measured with other settings than these, since the rows could not be compared. */
enum status outputs_earlier(const struct outputs *outputs, const char *settings,
                            const struct log *log, struct results **results, struct error *error);

#endif
