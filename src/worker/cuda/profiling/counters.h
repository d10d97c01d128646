/* Hardware counters of the GPU of this process, by CUPTI's range profiler.
 *
 * It has two users, which differ in who runs the work. profiler.c counts pieces of work that it can
 * repeat, once for each pass: counters_open, the collect functions any number of times,
 * counters_close. The library that is injected into a program counts regions of the program, one
 * pass in each: counters_start and what is below it, until the process ends. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <cuda.h>

#include "base/status.h"
#include "model/outcome.h"
#include "model/quantity.h"
#include "model/profiled_work.h"

struct counters;

/* What is a range of its own, with values of its own. */
enum counters_by {
    COUNTERS_BY_RANGE,  /* a piece of work, one launch of it, or a region */
    COUNTERS_BY_LAUNCH, /* each kernel, while no other runs; of regions alone */
    COUNTERS_BY_REPLAY  /* each kernel, which CUPTI repeats for all passes; of regions alone */
};

/* ---- pieces of work ---- */

/* Which GPU, as CUDA numbers it in this process, and its context. NULL if its counters cannot be
 * had: `refusal` (enum counted) says why, and what to do about it. */
struct counters *counters_open(int device, CUcontext context, struct outcome *refusal);
void counters_close(struct counters *counters); /* takes NULL */

/* Counts pieces of work in one collection: values[i] is of works[i]. All are repeated together,
 * once for each pass. It counts all quantities that the chip has, but of the tensor units' only
 * `tensors` (a set, see quantity_tensor). values[] is NaN where there is none. If the counters
 * failed all of it is NaN, and the outcome says why, COUNTED_REFUSED or COUNTED_INCOMPLETE;
 * otherwise it is COUNTED_YES. The status is that of the work. */
enum status counters_collect(struct counters *counters, unsigned tensors,
                             const struct profiled_work *works, size_t count,
                             double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                             struct error *error);

/* As counters_collect, but of each kernel by itself: values[] are of the launches[0] launches of
 * the first work's `run`, then of the second's, and so on. Another number of launches is
 * COUNTED_INCOMPLETE. `room`: for all launches of this collection, and of others that follow it,
 * for which CUPTI need not be attached anew then. QUANTITY_ACTIVITIES in place of `tensors`: of
 * each its activities, and nothing else. */
enum status counters_collect_launches(struct counters *counters, unsigned tensors,
                                      const struct profiled_work *works, const size_t *launches,
                                      size_t count, size_t room, double (*values)[QUANTITY_COUNT],
                                      struct outcome *outcome, struct error *error);

/* CUPTI leaves until the next collection, and forgets which tensors were asked for.
 *
 * Attaching it costs far more than counting, and the processes of a node wait for each other over
 * it. CUPTI learns what to count once, when it is attached. So that collections which follow
 * each other need not attach it anew, it goes on to count all tensors that were asked for since.
 * After a failed collection it leaves in any case. A collection that fails where CUPTI had stayed,
 * or that leaves a quantity without value, is repeated with CUPTI attached anew. If that succeeds,
 * all later ones attach it anew. */
void counters_detach(struct counters *counters);
/* Whether CUPTI is attached now; takes NULL. */
bool counters_are_attached(const struct counters *counters);

/* Whether the chip can count it at all. */
bool counters_have(const struct counters *counters, enum quantity quantity);

/* ---- regions of a program ---- */

struct counters_order {
    enum counters_by by;
    unsigned tensors;
    const char *image; /* COUNTERS_BY_RANGE: file that the last run left, or is not there */
    size_t room;       /* launches that there is room for; not of COUNTERS_BY_RANGE */
    size_t passes;     /* COUNTERS_BY_LAUNCH: that this run has regions for */
};

/* What counters_leave writes is a new file, "IMAGE.next": whether it is good is for the worker to
 * say. */
#define COUNTERS_NEXT ".next"

/* Starts the pass, long before the region: a start fills L2, and takes time. With
 * COUNTERS_BY_REPLAY it starts with the region. COUNTERS_BY_LAUNCH becomes COUNTERS_BY_RANGE in
 * *order if counting takes more passes than there are regions for. NULL: the counters cannot be
 * had, and *refusal (enum counted) says why. What it has attached stays until counters_end, or
 * until the process ends. */
struct counters *counters_start(int device, CUcontext context, struct counters_order *order,
                                struct outcome *refusal);
/* How many passes it takes. */
size_t counters_passes(const struct counters *counters);

/* Below: called with the device idle. False: CUPTI refuses, and *refusal says why. */

bool counters_region_open(struct counters *counters, struct outcome *refusal);
/* Ends the pass. *last: no pass is left. */
bool counters_region_close(struct counters *counters, bool *last, struct outcome *refusal);
/* The next pass starts. */
bool counters_pass_start(struct counters *counters, struct outcome *refusal);
/* Leaves the file for the next run: after the last region of this one. */
bool counters_leave(struct counters *counters, const char *image, struct outcome *refusal);
/* After the last pass: of the region, or of each of the last `count` launches, of all `begun` since
 * the pass started. NaN where there is none. */
bool counters_read(struct counters *counters, size_t count, size_t begun,
                   double (*values)[QUANTITY_COUNT], struct outcome *refusal);

/* Frees what counters_start made: another process may have the GPU's counters. Takes NULL. */
void counters_end(struct counters *counters);
