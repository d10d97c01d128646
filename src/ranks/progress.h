/* How far the sweep is, on standard error of rank 0: a bar on a terminal, now and then a plain line
 * in a batch log. */
#pragma once

#include <stddef.h>

#include "base/log.h"

struct progress; /* the log stays the caller's */

/* `done` of `total` were already there. what: in front of each line, "" or "roofs: "; the caller's.
 * NULL without memory. */
struct progress *progress_create(const struct log *log, const char *what, size_t done,
                                 size_t total);
/* The first configuration is handed out now: the time left is reckoned from here. */
void progress_start(struct progress *progress);
/* What is still to do, which may grow smaller than total - done if a rank is lost; so many of these
 * are timed, and wait for their counters. */
struct progress_left {
    size_t count, timed;
};
void progress_update(struct progress *progress, struct progress_left left, size_t failed);
void progress_destroy(struct progress *progress); /* clears the bar; takes NULL */

/* The pure part: "[#####++.............] 12/48, 6 timed, 1 failed, 0:35 left" into text.
 * seconds_left < 0: unknown. */
void progress_format(size_t total, struct progress_left left, size_t failed, double seconds_left,
                     char text[128]);
