#include "ranks/time_limit.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const double reserve_share = 0.1, reserve_least = 1, reserve_most = 30, reserve_row = 2e-3;

/* Later than any job ends; seconds of it have a date. */
static const double epoch_most = 1e11;

bool time_limit_job_end(const char *text, double *epoch)
{
    char *rest = NULL;
    if (!text || !isdigit((unsigned char)*text))
        return false;
    double value = strtod(text, &rest);
    if (*rest || value > epoch_most)
        return false;
    *epoch = value;
    return true;
}

struct time_limit time_limit_none(void)
{
    return (struct time_limit){.end = INFINITY, .whole = INFINITY};
}

static struct time_limit of_option(double seconds, const struct time_limit_clock *clock)
{
    struct time_limit limit = {.end = clock->start + seconds, .whole = seconds};
    snprintf(limit.text, sizeof limit.text, "--time-limit %.6g s", seconds);
    return limit;
}

static struct time_limit of_job(double epoch, const struct time_limit_clock *clock)
{
    struct time_limit limit = {.end = clock->now + epoch - clock->epoch};
    time_t second = (time_t)epoch;
    struct tm utc;
    char stamp[32];
    limit.whole = fmax(limit.end - clock->start, 0);
    gmtime_r(&second, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(limit.text, sizeof limit.text, "SLURM_JOB_END_TIME %s", stamp);
    return limit;
}

struct time_limit time_limit_create(double seconds, const char *job_end,
                                    const struct time_limit_clock *clock)
{
    struct time_limit limit = time_limit_none();
    double epoch;
    if (isinf(seconds))
        return limit;
    if (seconds > 0)
        limit = of_option(seconds, clock);
    if (time_limit_job_end(job_end, &epoch)) {
        struct time_limit job = of_job(epoch, clock);
        if (job.end < limit.end)
            limit = job;
    }
    return limit;
}

double time_limit_reserve(const struct time_limit *limit, size_t rows)
{
    return fmin(fmax(reserve_share * limit->whole, reserve_least), reserve_most) +
           reserve_row * (double)rows;
}

double time_limit_left(const struct time_limit *limit, double now, size_t rows)
{
    return isinf(limit->end) ? INFINITY : limit->end - time_limit_reserve(limit, rows) - now;
}
