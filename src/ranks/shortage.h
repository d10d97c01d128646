/* What a sweep leaves for lack of time, and one message that says so. */
#ifndef ROOFSWEEP_SHORTAGE_H
#define ROOFSWEEP_SHORTAGE_H

#include <stddef.h>

#include "manifest/plan.h"
#include "ranks/forecast.h"
#include "ranks/schedule.h"
#include "ranks/time_limit.h"

struct shortage {
    double left; /* s to measure in; 0 or less: the limit has come */
    double room; /* s that the run had for rows, behind opening and roofs; NaN: it came to none */
    size_t late; /* configurations that do not fit any more; another run can measure them */
    double shortest; /* s, of these */
    size_t never;    /* configurations that, judged by what others took, need more than the room */
    double longest;  /* s, of these */
};

struct shortage shortage_of(double left, double room);
void shortage_add(struct shortage *shortage, struct estimate estimate);
/* All that is not done; `queues`: ranks with an item of their own, 1 where they share them. */
void shortage_add_left(struct shortage *shortage, const struct plan *plan,
                       const struct schedule *schedule, const struct forecast *forecast,
                       int queues);

/* Another run with the same limit would leave the same. */
bool shortage_is_hopeless(const struct shortage *shortage);

/* One line for people. `total`: configurations of the sweep. */
enum { SHORTAGE_TEXT = 576 };
void shortage_format(const struct shortage *shortage, const struct time_limit *limit, size_t total,
                     char text[SHORTAGE_TEXT]);

#endif
