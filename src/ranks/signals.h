/* Signals that end a sweep in order: SIGINT, SIGTERM, SIGUSR1, SIGHUP unless ignored (nohup), and
 * SIGALRM for the time limit. */
#pragma once

#include <signal.h>

/* Sets *set to these signals except SIGALRM, which only this process gets. */
void signals_ending(sigset_t *set);

/* Notes signals from now on. A second signal of a kind ends the process at once. */
void signals_catch(void);

/* Schedules SIGALRM in `seconds`, at once if not positive; INFINITY cancels. */
void signals_alarm(double seconds);

/* Returns "interrupted by a signal", or for SIGALRM that the time limit has come. */
const char *signals_text(int number);

/* Last signal; 0: none. Global because handlers set it; the caller may reset it. */
extern volatile sig_atomic_t signals_caught;
