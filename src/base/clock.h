/* Now, in seconds, and later. */
#ifndef ROOFSWEEP_CLOCK_H
#define ROOFSWEEP_CLOCK_H

double clock_monotonic(void); /* for differences */
double clock_epoch(void);     /* since 1970-01-01T00:00:00Z */

void clock_sleep(double seconds); /* a signal may end it early */

#endif
