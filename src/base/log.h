/* Lines for people, on standard error, and what is printed on standard output. One struct log per
 * process, made in main and passed on. */
#pragma once

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

/* Where nobody reads a pipe or terminal, messages are left out, counted, and the process goes on.
 * log.stream may be closed, and then `stream`. */
struct log log_create(FILE *stream, enum log_level level, int rank);

/* One line "roofsweep: 2026-11-22T01:50:03Z node7 rank 3: TEXT"; rank 0 is not named; the newline
 * is added. What a terminal must not see is not in it, see text.h. */
void log_print(const struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What ended the program; not subject to --quiet. */
void log_error(const struct log *log, const struct error *error);

/* What the program prints on standard output: collected, then printed whole, or it is an error.
 * Order of calls: printout_open, writes to `stream`, printout_close. */
struct printout {
    FILE *stream;
    char *text;
    size_t length;
};

/* STATUS_SYSTEM without memory. */
enum status printout_open(struct printout *printout, struct error *error);

/* Prints and frees it. STATUS_SYSTEM if standard output does not take all of it; *unread is then
 * set if it is a pipe whose reader has gone. `unread` may be NULL. */
enum status printout_close(struct printout *printout, bool *unread, struct error *error);
