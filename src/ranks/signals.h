/* The signals that end a sweep in order: SIGINT, SIGTERM, SIGUSR1, and SIGHUP unless the program
 * was started without it (nohup); and SIGALRM, which the time limit sends. */
#pragma once

#include <signal.h>

/* All but SIGALRM, which is sent to one process alone. */
void signals_ending(sigset_t *set);

/* From now on they are noted. A second signal of the same kind ends the process at once. */
void signals_catch(void);

/* Has SIGALRM sent in so many seconds, at once if there are none left; INFINITY: no more. */
void signals_alarm(double seconds);

/* What ended something: "interrupted by a signal", or that the time limit came. */
const char *signals_text(int number);

/* The number of the last one; 0: none. What a handler can reach, so there is one for the process;
 * the caller may set it back to 0. */
extern volatile sig_atomic_t signals_caught;
