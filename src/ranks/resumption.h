/* What the rows of earlier sessions mean to a new one: their configurations are done, and their times tell
 * how long those like them will take. */
#ifndef ROOFSWEEP_RESUMPTION_H
#define ROOFSWEEP_RESUMPTION_H

#include "manifest/plan.h"
#include "model/device.h"
#include "ranks/forecast.h"
#include "ranks/schedule.h"
#include "results/results.h"

struct resumption {
    const struct plan *plan;
    const struct results *earlier; /* NULL: there are none */
    const struct device *devices;  /* of each rank, in this session */
    int ranks;
    bool replicate;
    struct schedule *schedule; /* both learn */
    struct forecast *forecast;
};

/* False without memory. */
bool resumption_apply(const struct resumption *resumption);

/* Whether the time of such a record tells how long its like take: it was measured, at the first attempt. */
bool resumption_tells(int64_t status, int64_t attempts);

#endif
