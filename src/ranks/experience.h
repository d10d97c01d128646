/* What a run learns from its rows: how long those like them take, and which algorithms searches chose. */
#ifndef ROOFSWEEP_EXPERIENCE_H
#define ROOFSWEEP_EXPERIENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "manifest/plan.h"
#include "model/device.h"
#include "model/record.h"
#include "ranks/forecast.h"
#include "ranks/schedule.h"
#include "results/choices.h"

/* All of it is the caller's. */
struct experience {
    const struct plan *plan;
    const struct device *devices; /* of each rank */
    const struct log *log;
    struct schedule *schedule; /* both learn how long rows take */
    struct forecast *forecast;
    struct choices *choices; /* NULL: none are kept, or not any more */
};

/* This rank has timed a row, s; its record is to come. What is counted together has its records late, so
 * timings tell the schedule. Whatever waits for its counters took one attempt. */
void experience_add_timing(struct experience *experience, int rank, size_t item, double seconds);

/* A row by this rank. `seconds`: that it took; 0: nobody knows. Only one attempt of a row that was measured
 * tells how long its like take. `timed`: experience_add_timing has told of it. */
void experience_add(struct experience *experience, int rank, size_t item,
                    const struct record *record, double seconds, bool timed);

/* The choices are on disk. Those that cannot be kept are done without, with a warning. */
void experience_save(struct experience *experience);

#endif
