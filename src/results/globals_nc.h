/* The global attributes of a result file: what the sweep was, who worked on it, and when. */
#ifndef ROOFSWEEP_GLOBALS_NC_H
#define ROOFSWEEP_GLOBALS_NC_H

#include "results/dataset.h"
#include "results/results.h"

/* Rises when a variable gets another name, type or meaning, or one that every file had may be absent. A
 * new variable or attribute alone does not raise it. Files before version 2 have no number. */
enum { FORMAT_VERSION = 2 };

void globals_write(struct dataset *set, const struct results *results);

/* Whether an open file is of this version; STATUS_USAGE if not. `way_out` says what to do with one of an
 * earlier version. */
enum status globals_check_version(int file, const char *path, const char *way_out,
                                  struct error *error);

#endif
