/* Now, in seconds, and later. */
#pragma once

#include <stdbool.h>

double clock_monotonic(void); /* for differences */
double clock_epoch(void);     /* since 1970-01-01T00:00:00Z */
/* The same for what is kept: NaN of a clock that was never set and stands before 1970. */
double clock_date(void);

/* A bound on a wait that is looked at at least once a second. Time in which this process did not
 * run, as its job was suspended (SIGSTOP, SIGCONT), does not count. */
struct countdown {
    double left;   /* s; INFINITY: no bound */
    double missed; /* s that did not count */
    double last;   /* s, of clock_monotonic: the last look */
};

struct countdown countdown_start(double seconds);
bool countdown_over(struct countdown *countdown);

void clock_sleep(double seconds); /* a signal may end it early */
