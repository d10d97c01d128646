#include "base/clock.h"

#include <math.h>
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

double clock_date(void)
{
    double now = clock_epoch();
    return now < 0 ? NAN : now;
}

struct countdown countdown_start(double seconds)
{
    return (struct countdown){.left = seconds, .last = clock_monotonic()};
}

bool countdown_over(struct countdown *countdown)
{
    const double gap_max = 2; /* s */
    double now = clock_monotonic(), passed = now - countdown->last;
    countdown->left -= fmin(passed, gap_max);
    countdown->missed += fmax(passed - gap_max, 0);
    countdown->last = now;
    return countdown->left <= 0;
}

bool wait_over(struct countdown *wait, const struct wait_limit *limit)
{
    if (limit->signal && *limit->signal && limit->after_signal > 0)
        wait->left = fmin(wait->left, limit->after_signal);
    return countdown_over(wait);
}

void clock_sleep(double seconds)
{
    const struct timespec time = {(time_t)seconds,
                                  (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
}
