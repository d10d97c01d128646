/* Lines for people, on standard error. One struct log per process, made in main and passed on. */
#ifndef ROOFSWEEP_LOG_H
#define ROOFSWEEP_LOG_H

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

enum log_level { LOG_WARNING, LOG_INFO, LOG_DEBUG };

struct log {
    FILE *stream;
    enum log_level level; /* --quiet: LOG_WARNING, default LOG_INFO, --verbose: LOG_DEBUG */
    bool terminal;        /* a progress bar may stand on the last line */
    int rank;             /* all but warnings are rank 0's, unless --verbose */
    char hostname[64];
};

struct log log_create(FILE *stream, enum log_level level, int rank);

/* One line "roofsweep: 2026-11-22T01:50:03Z node7 rank 3: TEXT"; rank 0 is not named; the newline is added. What a terminal must not see is not in it, see
 * utf8.h. */
void log_print(const struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What ended the program; not subject to --quiet. */
void log_error(const struct log *log, const struct error *error);

#endif
