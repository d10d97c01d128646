#include "base/clock.h"

#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double clock_monotonic(void)
{
    return seconds(CLOCK_MONOTONIC);
}

double clock_epoch(void)
{
    return seconds(CLOCK_REALTIME);
}

void clock_sleep(double seconds)
{
    const struct timespec time = {(time_t)seconds,
                                  (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
}
