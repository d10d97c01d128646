/* What a run learns from its rows: how long those like them take, and which algorithms searches chose. */
#ifndef ROOFSWEEP_EXPERIENCE_H
#define ROOFSWEEP_EXPERIENCE_H

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

/* A row by this rank. `seconds`: that it took; 0: nobody knows. Only one attempt of a row that was measured
 * tells how long its like take. */
void experience_add(struct experience *experience, int rank, size_t item,
                    const struct record *record, double seconds);

/* The choices are on disk. Those that cannot be kept are done without, with a warning. */
void experience_save(struct experience *experience);

#endif
