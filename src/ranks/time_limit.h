/* End of the run, and report of the remaining rows. The run ends --time-limit after the start of
 * the program, or with the batch job if that is earlier. Times are s of CLOCK_MONOTONIC. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ranks/estimate.h"

struct time_limit {
    double end;    /* INFINITY: no limit */
    double whole;  /* s, from the start of the program to the end */
    char text[96]; /* name of the limit, for people */
};

struct time_limit time_limit_none(void);

/* The current moment by both clocks, and the start of the program. */
struct time_limit_clock {
    double start, now; /* s, CLOCK_MONOTONIC */
    double epoch;      /* s since 1970-01-01T00:00:00Z, now */
};

/* `seconds`: --time-limit; 0: not given; INFINITY: no limit. `job_end`: SLURM_JOB_END_TIME in s
 * since 1970; NULL or not a number: none. */
struct time_limit time_limit_create(double seconds, const char *job_end,
                                    const struct time_limit_clock *clock);

/* True if `text` is a valid SLURM_JOB_END_TIME. */
bool time_limit_job_end(const char *text, double *epoch);

/* Returns the time left for measuring, s, less the time to write a file of `rows` rows and to end
 * the ranks. INFINITY: no limit. */
double time_limit_left(const struct time_limit *limit, double now, size_t rows);

/* Configurations that remain for lack of time, counted by left_over_add. */
struct left_over {
    double left;      /* s, time left for measuring; <= 0: the limit has come */
    double rows_time; /* s, time of the run for rows, after opening and roofs; NaN: none */
    size_t late;      /* configurations that another run can measure */
    double shortest;  /* s; shortest estimate among `late` */
    size_t never;     /* configurations whose estimate exceeds rows_time */
    double longest;   /* s; longest estimate among `never` */
};
void left_over_add(struct left_over *left_over, struct estimate estimate);

/* True if another run with this limit would leave the same configurations. */
bool left_over_is_permanent(const struct left_over *left_over);

/* Writes one line for people. `total`: number of configurations of the sweep. */
enum { LEFT_OVER_TEXT = 576 };
void left_over_format(const struct left_over *left_over, const struct time_limit *limit,
                      size_t total, char text[LEFT_OVER_TEXT]);
