/* The collector: reads hardware counters of the GPU of this process, by CUPTI's range profiler. Only
 * profiler.c calls it.
 *
 * Life cycle: collector_open once, the collect functions any number of times, collector_close. CUPTI stays
 * attached from one to the next until collector_detach, and is attached again by the next collection. Not
 * thread-safe. */
#ifndef ROOFSWEEP_COLLECTOR_H
#define ROOFSWEEP_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <cuda.h>

#include "base/status.h"
#include "model/outcome.h"
#include "model/quantity.h"
#include "worker/cuda/profiling/profiled_work.h"

struct collector;

/* Which GPU, as CUDA numbers it in this process, and its context. NULL if its counters cannot be
 * had: `refusal` (enum counted) says why, and what to do about it. */
struct collector *collector_open(int device, CUcontext context, struct outcome *refusal);
void collector_close(struct collector *collector); /* takes NULL */

/* Counts pieces of work in one collection: values[i] is of works[i]. All are repeated together, once
 * for each pass. It counts all quantities that the chip has, but of the tensor units' only `tensors`
 * (a set, see quantity_tensor). values[] is NaN where there is none. If the counters failed all of it
 * is NaN, and the outcome says why, COUNTED_REFUSED or COUNTED_INCOMPLETE; otherwise it is
 * COUNTED_YES. The status is that of the work. */
enum status collector_collect(struct collector *collector, unsigned tensors,
                              const struct profiled_work *works, size_t count,
                              double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                              struct error *error);

/* As collector_collect, but of each kernel by itself, while no other runs: values[i] is of the i-th of
 * the last `launches` launches, which are those of `run`. Those of `prepare` come before. If they are
 * more than 7 times as many and 127, the outcome is COUNTED_INCOMPLETE. `most`: launches that collections
 * which follow this one will have, so that CUPTI need not be attached anew for them. */
enum status collector_collect_launches(struct collector *collector, unsigned tensors,
                                       const struct profiled_work *work, size_t launches,
                                       size_t most, double (*values)[QUANTITY_COUNT],
                                       struct outcome *outcome, struct error *error);

/* CUPTI leaves until the next collection, and forgets which tensors were asked for.
 *
 * Attaching it costs far more than counting, and the processes of a node wait for each other over it. What is
 * counted CUPTI is told once, when it is attached. So that collections which follow each other need not
 * attach it anew, it goes on to count all tensors that were asked for since. After a failed collection it
 * leaves in any case. A collection that fails where CUPTI had stayed, or that leaves a quantity without value, is
 * repeated with CUPTI attached anew. If that succeeds, all later ones attach it anew. */
void collector_detach(struct collector *collector);
/* Whether CUPTI is attached now; takes NULL. */
bool collector_is_attached(const struct collector *collector);

/* Whether the chip can count it at all. */
bool collector_has(const struct collector *collector, enum quantity quantity);

/* How many times the last collection ran the work. */
int collector_passes(const struct collector *collector);

#endif
