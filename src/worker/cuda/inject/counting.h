/* One pass of hardware counters over one region of a program. What it counted stands in a file, from which
 * the next run of the program goes on: no kernel is replayed, and no memory is saved. */
#ifndef ROOFSWEEP_INJECT_COUNTING_H
#define ROOFSWEEP_INJECT_COUNTING_H

#include <stdbool.h>
#include <cuda.h>

#include "model/outcome.h"
#include "model/quantity.h"

struct counting;

/* What this pass leaves is a new file, "IMAGE.next": whether it is good is for the worker to say. */
#define COUNTING_NEXT ".next"

/* Starts the pass, long before the region: a start fills L2, and takes time. `image` is a file that the
 * last pass left, or is not there. NULL: the counters cannot be had, and *refusal (enum counted) says
 * why. */
struct counting *counting_start(CUcontext context, unsigned tensors, const char *image,
                                struct outcome *refusal);
CUcontext counting_context(const struct counting *counting);

/* With the device idle. False: CUPTI refuses. */
bool counting_open(struct counting *counting, struct outcome *refusal);
/* With the device idle: ends the pass and leaves the file. *last: no pass is left, and values[] are those
 * of the region, NaN where there is none. */
bool counting_close(struct counting *counting, bool *last, double values[QUANTITY_COUNT],
                    struct outcome *refusal);
/* How many runs it takes. */
size_t counting_passes(const struct counting *counting);

#endif
