/* Hardware counters of the GPU of this process, by CUPTI's range profiler.
 *
 * There are two users, which differ in who runs the work. profiler.c counts pieces of work and
 * repeats them for each pass: counters_open, any number of counters_collect, counters_close. The
 * library injected into a program counts one pass in each region, with counters_start and the
 * functions below it, until the process ends. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <cuda.h>

#include "base/status.h"
#include "model/outcome.h"
#include "model/quantity.h"
#include "model/profiled_work.h"

struct counters;

/* The piece of a run that gets values of its own. */
enum counters_by {
    COUNTERS_BY_RANGE,  /* a piece of work, one launch of it, or a region */
    COUNTERS_BY_LAUNCH, /* each kernel of a region, while no other kernel runs */
    COUNTERS_BY_REPLAY  /* each kernel of a region; CUPTI repeats the kernel for all passes */
};

/* ---- pieces of work ---- */

/* `device` is CUDA's number of the GPU in this process, `context` its context. NULL if the counters
 * are not available: *refusal (enum counted) has the cause and the way out. */
struct counters *counters_open(int device, CUcontext context, struct outcome *refusal);
void counters_close(struct counters *counters); /* takes NULL */

/* Counts pieces of work in one collection: each pass runs all works once. Counts all quantities of
 * the chip except activities and tensor quantities outside of the set `tensors` (quantity_tensor).
 * `tensors` = QUANTITY_ACTIVITIES counts the activities instead.
 *
 * launches NULL: values[i] belongs to works[i]. Otherwise each launch of `run` has values of its
 * own: first the launches[0] launches of works[0], then the launches[1] of works[1], and so on. If
 * works launch more or fewer kernels, the outcome is COUNTED_INCOMPLETE. `room` is the largest
 * number of values of any one collection, this or later. Later ones need not attach CUPTI again.
 *
 * A quantity without a counter is NaN. If counting fails, all values are NaN and *outcome says why:
 * COUNTED_REFUSED or COUNTED_INCOMPLETE, else COUNTED_YES. The status is that of the work. */
enum status counters_collect(struct counters *counters, unsigned tensors,
                             const struct profiled_work *works, size_t count,
                             const size_t *launches, size_t room, double (*values)[QUANTITY_COUNT],
                             struct outcome *outcome, struct error *error);

/* Detaches CUPTI until the next collection, and forgets the requested tensor quantities.
 *
 * Attaching costs far more than counting, and the processes of a node wait for each other while
 * they attach. So CUPTI stays attached after a successful collection, and later collections
 * also count the tensor quantities of earlier ones. A failed collection detaches CUPTI. If CUPTI
 * stayed attached from an earlier collection and values are missing, CUPTI is attached again and
 * the collection repeated. If that succeeds, each later collection attaches CUPTI again. */
void counters_detach(struct counters *counters);
bool counters_are_attached(const struct counters *counters); /* takes NULL */

/* Whether the chip has a counter for the quantity. */
bool counters_have(const struct counters *counters, enum quantity quantity);

/* ---- regions of a program ---- */

struct counters_order {
    enum counters_by by;
    unsigned tensors;
    const char *image; /* COUNTERS_BY_RANGE: file that the last run wrote; it need not exist */
    size_t room;       /* BY_LAUNCH and BY_REPLAY: largest number of launches */
    size_t passes;     /* BY_LAUNCH: number of regions in this run */
};

/* counters_leave writes the new file "IMAGE.next"; the worker decides whether to use it. */
#define COUNTERS_NEXT ".next"

/* Starts the pass, long before the region: a start takes time and fills L2. With COUNTERS_BY_REPLAY
 * the pass starts with the region. If counting by launch needs more passes than there are regions,
 * order->by becomes COUNTERS_BY_RANGE. NULL: the counters are not available, and *refusal (enum
 * counted) says why. CUPTI stays attached until counters_end or the end of the process. */
struct counters *counters_start(int device, CUcontext context, struct counters_order *order,
                                struct outcome *refusal);
size_t counters_passes(const struct counters *counters);

/* The functions below need an idle device. They return false and set *refusal if CUPTI refuses. */

bool counters_region_open(struct counters *counters, struct outcome *refusal);
/* Ends the pass. *last: no pass is left. */
bool counters_region_close(struct counters *counters, bool *last, struct outcome *refusal);
bool counters_pass_start(struct counters *counters, struct outcome *refusal);
/* Writes the file for the next run, after the last region of this run. */
bool counters_leave(struct counters *counters, const char *image, struct outcome *refusal);
/* After the last pass: reads the values of the region (`count` is 1), or of the last `count`
 * launches of the pass, which had `begun` launches. NaN: no value. */
bool counters_read(struct counters *counters, size_t count, size_t begun,
                   double (*values)[QUANTITY_COUNT], struct outcome *refusal);

/* Frees what counters_start made, and leaves the GPU's counters to other processes. Takes NULL. */
void counters_end(struct counters *counters);
