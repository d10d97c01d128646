/* Clocks, in seconds, and waits. */
#pragma once

#include <signal.h>
#include <stdbool.h>

double clock_monotonic(void); /* s; only differences have a meaning */
double clock_epoch(void);     /* s since 1970-01-01T00:00:00Z */
/* As clock_epoch, but NaN if the clock shows a time before 1970, because nobody has set it. */
double clock_date(void);

/* A timeout that pauses while the process is stopped, for example with its job (SIGSTOP, SIGCONT).
 * The caller calls countdown_over at least once a second; a longer gap counts as 2 s at most. */
struct countdown {
    double left;   /* s until the timeout; INFINITY: none */
    double missed; /* s, the part of longer gaps that did not count */
    double last;   /* s, clock_monotonic of the last call */
};

struct countdown countdown_start(double seconds);
bool countdown_over(struct countdown *countdown);

/* Limit on a wait for other ranks or processes. */
struct wait_limit {
    double seconds;                      /* s; 0: no limit */
    double after_signal;                 /* s, once *signal is set; 0: no change */
    const volatile sig_atomic_t *signal; /* may be NULL */
};

bool wait_over(struct countdown *wait, const struct wait_limit *limit);

void clock_sleep(double seconds); /* a signal may end it early */
