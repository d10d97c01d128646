/* What the program prints on standard output: collected, then printed whole, or it is an error.
 * Order of calls: printout_open, writes to `stream`, printout_close. */
#ifndef ROOFSWEEP_PRINTOUT_H
#define ROOFSWEEP_PRINTOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

struct printout {
    FILE *stream;
    char *text;
    size_t length;
};

/* STATUS_SYSTEM without memory. */
enum status printout_open(struct printout *printout, struct error *error);

/* Prints and frees it. STATUS_SYSTEM if standard output does not take all of it; *unread is then set
 * if it is a pipe whose reader has gone. `unread` may be NULL. */
enum status printout_close(struct printout *printout, bool *unread, struct error *error);

#endif
