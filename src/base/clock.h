/* Clocks, in seconds, and waits. */
#pragma once

#include <signal.h>
#include <stdbool.h>

double clock_monotonic(void); /* s; only differences have a meaning */
double clock_epoch(void);     /* s since 1970-01-01T00:00:00Z */
double clock_date(void);      /* as clock_epoch; NaN if the clock shows a time before 1970 */

/* A timeout that pauses while the process is stopped, for example with its job (SIGSTOP, SIGCONT):
 * a gap between calls of countdown_over counts as 2 s at most. Call it every second. */
struct countdown {
    double left;   /* s until the timeout; INFINITY: none */
    double missed; /* s by which gaps exceeded 2 s */
    double last;   /* s, clock_monotonic of the last call */
};

struct countdown countdown_start(double seconds);
bool countdown_over(struct countdown *countdown);

/* Limit on a wait for other ranks or processes. */
struct wait_limit {
    double seconds;                      /* s; 0: no limit */
    double after_signal;                 /* s after *signal is set; 0: no new limit */
    const volatile sig_atomic_t *signal; /* may be NULL */
};

bool wait_over(struct countdown *wait, const struct wait_limit *limit);

void clock_sleep(double seconds); /* a signal may end the sleep */
