/* Clocks, in seconds, and waits. */
#pragma once

#include <stdbool.h>

double clock_monotonic(void); /* for differences */
double clock_epoch(void);     /* since 1970-01-01T00:00:00Z */
/* As clock_epoch, for records: NaN if the clock was never set and stands before 1970. */
double clock_date(void);

/* A timeout. The caller calls countdown_over at least once a second, so a longer gap means that the
 * process was stopped, for example with its job (SIGSTOP, SIGCONT). These gaps do not count. */
struct countdown {
    double left;   /* s until the timeout; INFINITY: none */
    double missed; /* s that did not count */
    double last;   /* s, clock_monotonic of the last call */
};

struct countdown countdown_start(double seconds);
bool countdown_over(struct countdown *countdown);

void clock_sleep(double seconds); /* a signal may end it early */
