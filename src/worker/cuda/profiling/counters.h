/* Hardware counters of the device of this process, by CUPTI's Range Profiler. The work is repeated
 * by its owner, once for each pass, so that CUPTI saves and restores no memory.
 *
 * Life cycle: counters_open once, the counters_collect functions any number of times,
 * counters_close. From counters_open on the profiler stands by in the process, until it is told not
 * to: then it is there within the counters_collect functions only, and what is timed between two of
 * them runs without it. Not thread-safe. */
#ifndef ROOFSWEEP_COUNTERS_H
#define ROOFSWEEP_COUNTERS_H

#include <cuda.h>
#include <cupti_result.h>

#include "base/status.h"
#include "worker/cuda/profiling/metrics.h"

enum { COUNTERS_TEXT = 512 };

struct counters;

/* The work to count. Both are called once for each pass and leave the device idle. What lies in the
 * caches when it begins is what `prepare` leaves there. */
struct counters_work {
    enum status (*prepare)(void *argument, struct error *error); /* not counted */
    enum status (*run)(void *argument, struct error *error);     /* counted */
    void *argument;
};

/* Which GPU, as CUDA numbers it in this process, and its context. NULL if its counters cannot be
 * had: `refusal` says why, and what to do about it. */
struct counters *counters_open(int device, CUcontext context, char refusal[COUNTERS_TEXT]);
void counters_close(struct counters *counters); /* takes NULL */

/* All quantities that the chip has, but of the tensor units' only `tensors`. values[] is NaN where
 * there is none, and altogether if the counters failed: then `problem` says how ("refused: ..." or
 * "incomplete: ..."), otherwise it is "counted". The status is that of the work. */
enum status counters_collect(struct counters *counters, unsigned tensors,
                             const struct counters_work *work, double values[QUANTITY_COUNT],
                             char problem[COUNTERS_TEXT], struct error *error);

/* As counters_collect, of `count` pieces of work, each by itself: values[i] is of works[i]. One
 * attachment of the profiler for all, which costs more than most work. If one fails, so do all. */
enum status counters_collect_each(struct counters *counters, unsigned tensors,
                                  const struct counters_work *works, size_t count,
                                  double (*values)[QUANTITY_COUNT], char problem[COUNTERS_TEXT],
                                  struct error *error);

/* As counters_collect, but of each kernel by itself, while no other runs: values[i] is of the i-th of
 * the last `launches` launches, which are those of `run`. Those of `prepare` come before; if they are
 * more than 7 times as many and 63, that is the problem. */
enum status counters_collect_launches(struct counters *counters, unsigned tensors,
                                      const struct counters_work *work, size_t launches,
                                      double (*values)[QUANTITY_COUNT], char problem[COUNTERS_TEXT],
                                      struct error *error);

/* From the next collection on the profiler stays in the process between collections, idle: attaching
 * it costs far more than counting, and the processes of a node wait for each other over it. What it
 * counts it is told once, when it is attached; so that it need not be attached anew for long, it goes
 * on to count all tensors that were asked for since. false: it leaves at once. After a failed
 * collection it leaves in any case. One that fails where it stood by, or that leaves a quantity
 * without value, is repeated; if that succeeds, it does not stand by again. */
void counters_stand_by(struct counters *counters, bool stand_by);
/* Whether it is in the process now; takes NULL. */
bool counters_attached(const struct counters *counters);

/* The tensors that were asked for since it stands by. */
unsigned counters_asked(const struct counters *counters);

/* Whether the chip can count it at all. */
bool counters_have(const struct counters *counters, enum quantity quantity);

/* How many times the last collection ran the work. */
int counters_passes(const struct counters *counters);

#endif
