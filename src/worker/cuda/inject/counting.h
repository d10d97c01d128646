/* Hardware counters over regions of a program, one pass in each. What was counted stands in a file, from
 * which the next run of the program goes on: no memory is saved, and no kernel is replayed unless that is
 * asked for. */
#ifndef ROOFSWEEP_INJECT_COUNTING_H
#define ROOFSWEEP_INJECT_COUNTING_H

#include <stdbool.h>
#include <stddef.h>
#include <cuda.h>

#include "model/outcome.h"
#include "model/quantity.h"

struct counting;

/* What this run leaves is a new file, "IMAGE.next": whether it is good is for the worker to say. */
#define COUNTING_NEXT ".next"

/* What is a range of its own. */
enum counting_by {
    COUNTING_REGION,
    COUNTING_LAUNCHES, /* each launch, while no other kernel runs; all passes are in this run, or the region is
                          the range */
    COUNTING_REPLAY /* each launch, which CUPTI repeats for all passes: one region does */
};

struct counting_order {
    enum counting_by by;
    unsigned tensors;  /* a set, see quantity_tensor */
    const char *image; /* file that the last run left, or is not there; COUNTING_REGION alone */
    size_t room;       /* launches that there is room for; not of COUNTING_REGION */
    size_t passes;     /* of COUNTING_LAUNCHES: at most */
};

/* Starts the pass, long before the region: a start fills L2, and takes time. With COUNTING_REPLAY it starts
 * with the region. `order` is copied. NULL: the counters cannot be had, and *refusal (enum counted) says
 * why. */
struct counting *counting_start(CUcontext context, const struct counting_order *order,
                                struct outcome *refusal);
CUcontext counting_context(const struct counting *counting);
enum counting_by counting_by(const struct counting *counting);
/* How many passes it takes. */
size_t counting_passes(const struct counting *counting);

/* With the device idle. False: CUPTI refuses. */
bool counting_open(struct counting *counting, struct outcome *refusal);
/* With the device idle: ends the pass. *last: no pass is left. */
bool counting_close(struct counting *counting, bool *last, struct outcome *refusal);
/* The next pass starts, if one is left. */
bool counting_again(struct counting *counting, struct outcome *refusal);
/* Leaves the file for the next run: after the last region of this one. */
bool counting_leave(struct counting *counting, struct outcome *refusal);

/* After the last pass: of the region, or of each of the last `count` launches, of all `begun` since the pass
 * started. NaN where there is none. */
bool counting_read(struct counting *counting, size_t count, size_t begun,
                   double (*values)[QUANTITY_COUNT], struct outcome *refusal);

#endif
