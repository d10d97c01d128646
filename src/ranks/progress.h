/* Progress of the sweep on rank 0's standard error: a bar on a terminal, and occasional lines in a
 * batch log. */
#pragma once

#include <stddef.h>

#include "base/log.h"

struct progress; /* borrows the log */

/* `done` of `total` are done already. `what` begins each line, "" or "roofs: ", and is borrowed.
 * NULL: no memory. */
struct progress *progress_create(const struct log *log, const char *what, size_t done,
                                 size_t total);
/* Starts the estimate of the time left. */
void progress_start(struct progress *progress);
/* Numbers of configurations without a record, and of timed ones among them. With replicate, a lost
 * rank gives up its remaining configurations. */
struct progress_left {
    size_t count, timed;
    int round, rounds; /* rounds > 1: the line names the round */
};
void progress_update(struct progress *progress, struct progress_left left, size_t failed);
void progress_destroy(struct progress *progress); /* clears the bar; takes NULL */

/* Writes the line: "[#####++.............] 12/48, 6 timed, 1 failed, 0:35 left".
 * seconds_left < 0: unknown. */
enum { PROGRESS_TEXT = 256 };
void progress_format(size_t total, struct progress_left left, size_t failed, double seconds_left,
                     char text[PROGRESS_TEXT]);
