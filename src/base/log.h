/* Prints log lines on standard error, and results on standard output. main() makes the one struct
 * log of a process. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/status.h"

enum log_level { LOG_WARNING, LOG_INFO, LOG_DEBUG };

struct log {
    FILE *stream;
    enum log_level level; /* --quiet: LOG_WARNING, default LOG_INFO, --verbose: LOG_DEBUG */
    bool terminal;        /* `stream` is a terminal, whose last line may hold a progress bar */
    bool colour;          /* colour_wanted(`stream`) */
    int rank;             /* only rank 0 prints LOG_INFO; all ranks print warnings */
    char hostname[64];
};

#define COLOUR_RED    "\033[31m"
#define COLOUR_YELLOW "\033[33m"
#define COLOUR_DIM    "\033[2m"
#define COLOUR_END    "\033[0m"
/* Whether the descriptor is a terminal, TERM is not "dumb", and NO_COLOR is unset or empty
 * (no-color.org). */
bool colour_wanted(int descriptor);

/* Makes a log. If nobody reads its pipe or terminal, it waits for a second, then drops and counts
 * messages. log.stream may be a new stream on the same descriptor: close it before `stream`. */
struct log log_create(FILE *stream, enum log_level level, int rank);

/* Prints "roofsweep: 2026-11-22T01:50:03Z node7 rank 3: TEXT" and a newline; rank 0 prints no rank.
 * utf8_clean makes the text safe for a terminal. */
void log_print(const struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints the error that ends the program, also with --quiet. */
void log_error(const struct log *log, const struct error *error);

/* Collects standard output in memory and prints it at the end, so that no part is printed before an
 * error. Order of calls: printout_open, writes to `stream`, printout_close. */
struct printout {
    FILE *stream;
    char *text;
    size_t length;
};

/* STATUS_SYSTEM: no memory. */
enum status printout_open(struct printout *printout, struct error *error);

/* Prints and frees the text. STATUS_SYSTEM: the text cannot be written. *unread is then true if the
 * reader of a pipe has gone, or does not read within the limit. */
enum status printout_close(struct printout *printout, const struct wait_limit *limit, bool *unread,
                           struct error *error);
