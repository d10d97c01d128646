/* Clocks, in seconds, and waits. */
#pragma once

#include <signal.h>
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

/* Limit on a wait for others. */
struct wait_limit {
    double seconds;                      /* 0: none */
    double after_signal;                 /* s, once *signal is set; 0: no change */
    const volatile sig_atomic_t *signal; /* may be NULL */
};

struct countdown wait_start(const struct wait_limit *limit);
bool wait_over(struct countdown *wait, const struct wait_limit *limit);

void clock_sleep(double seconds); /* a signal may end it early */
