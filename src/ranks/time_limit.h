/* When this run must be over: --time-limit, counted from the start of the program, or the end of
 * the batch job, whichever comes first; and what a sweep leaves for lack of time. Times are s of
 * CLOCK_MONOTONIC. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ranks/estimate.h"

struct time_limit {
    double end;    /* INFINITY: there is none */
    double whole;  /* s, from the start of the program to the end */
    char text[96]; /* for people: where it comes from */
};

struct time_limit time_limit_none(void);

/* This moment by both clocks, and when the program began. */
struct time_limit_clock {
    double start, now; /* s, CLOCK_MONOTONIC */
    double epoch;      /* s since 1970-01-01T00:00:00Z, now */
};

/* seconds: of --time-limit; 0: not given; INFINITY: there is to be none. job_end: the text of
 * SLURM_JOB_END_TIME, in s since 1970; NULL: there is none. What is no such number counts as
 * none. */
struct time_limit time_limit_create(double seconds, const char *job_end,
                                    const struct time_limit_clock *clock);

/* Whether this is a number that SLURM_JOB_END_TIME can have. */
bool time_limit_job_end(const char *text, double *epoch);

/* s that are left for measuring: until the end, without the time to write a file of `rows` rows and
 * to end the ranks. INFINITY without a limit. */
double time_limit_left(const struct time_limit *limit, double now, size_t rows);

/* What is left for lack of time. left_over_add counts the configurations. */
struct left_over {
    double left; /* s to measure in; 0 or less: the limit has come */
    double
        rows_time; /* s that the run had for rows, after opening and roofs; NaN: it came to none */
    size_t late;   /* configurations that do not fit any more; another run can measure them */
    double shortest; /* s, of these */
    size_t never;    /* configurations that, judged by what others took, need more than rows_time */
    double longest;  /* s, of these */
};
void left_over_add(struct left_over *left_over, struct estimate estimate);

/* Another run with the same limit would leave the same. */
bool left_over_is_permanent(const struct left_over *left_over);

/* One line for people. `total`: configurations of the sweep. */
enum { LEFT_OVER_TEXT = 576 };
void left_over_format(const struct left_over *left_over, const struct time_limit *limit,
                      size_t total, char text[LEFT_OVER_TEXT]);
