#include "ranks/time_limit.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* s since 1970; later dates are implausible. */
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

struct time_limit time_limit_create(double seconds, const char *job_end,
                                    const struct time_limit_clock *clock)
{
    struct time_limit limit = time_limit_none();
    double epoch;
    if (isinf(seconds))
        return limit;
    if (seconds > 0) {
        limit.end = clock->start + seconds;
        limit.whole = seconds;
        snprintf(limit.text, sizeof limit.text, "--time-limit %.6g s", seconds);
    }
    if (time_limit_job_end(job_end, &epoch) && clock->now + epoch - clock->epoch < limit.end) {
        char stamp[32];
        struct tm utc;
        gmtime_r(&(time_t){(time_t)epoch}, &utc);
        strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &utc);
        limit.end = clock->now + epoch - clock->epoch;
        limit.whole = fmax(limit.end - clock->start, 0);
        snprintf(limit.text, sizeof limit.text, "SLURM_JOB_END_TIME %s", stamp);
    }
    return limit;
}

double time_limit_left(const struct time_limit *limit, double now, size_t rows)
{
    const double share = 0.1, least = 1, most = 30, row = 2e-3; /* s, except share */
    const double reserve = fmin(fmax(share * limit->whole, least), most) + row * (double)rows;
    return isinf(limit->end) ? INFINITY : limit->end - reserve - now;
}

/* ---- remaining rows ---- */

void left_over_add(struct left_over *left_over, struct estimate estimate)
{
    if (estimate.seconds > left_over->rows_time) {
        ++left_over->never;
        left_over->longest = fmax(left_over->longest, estimate.seconds);
    } else {
        left_over->shortest =
            left_over->late ? fmin(left_over->shortest, estimate.seconds) : estimate.seconds;
        ++left_over->late;
    }
}

bool left_over_is_permanent(const struct left_over *left_over)
{
    return left_over->never > 0 && left_over->late == 0;
}

/* "0.12 s", "12.3 s", "1234 s" */
enum { SECONDS_TEXT = 32 };
static const char *seconds_format(double seconds, char text[SECONDS_TEXT])
{
    int digits = seconds < 10 ? 2 : seconds < 100 ? 1 : 0;
    snprintf(text, SECONDS_TEXT, "%.*f s", digits, seconds);
    return text;
}

void left_over_format(const struct left_over *left_over, const struct time_limit *limit,
                      size_t total, char text[LEFT_OVER_TEXT])
{
    enum { PART_TEXT = 192 }; /* largest length of a reason, bytes */
    char late[PART_TEXT] = "", never[PART_TEXT] = "", some[SECONDS_TEXT], most[SECONDS_TEXT];
    size_t count = left_over->late + left_over->never;
    if (count == 0) {
        snprintf(text, LEFT_OVER_TEXT,
                 "the time limit (%s) came before all roofs were measured; go on with --resume",
                 limit->text);
        return;
    }
    if (left_over->late > 0 && left_over->left > 0)
        snprintf(late, PART_TEXT, "%s remain for rows, and the shortest of them may take %s",
                 seconds_format(left_over->left, some), seconds_format(left_over->shortest, most));
    else if (left_over->late > 0)
        snprintf(late, PART_TEXT, "only the time to write the file remains");
    if (left_over->never > 0)
        snprintf(never, PART_TEXT,
                 "%zu of them may take up to %s, more than any run with this limit has for a row "
                 "(%s): give it a longer one",
                 left_over->never, seconds_format(left_over->longest, most),
                 seconds_format(left_over->rows_time, some));
    snprintf(text, LEFT_OVER_TEXT,
             "%zu of %zu configurations are left for lack of time (%s): %s%s%s%s", count, total,
             limit->text, late, *late && *never ? "; " : "", never,
             *late ? "; go on with --resume" : "");
}
