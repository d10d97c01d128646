/* A collector over a scripted CUPTI (scripted_cupti.h), with work that looks when it is called. For tests only. */
#ifndef ROOFSWEEP_TEST_COLLECTOR_BENCH_H
#define ROOFSWEEP_TEST_COLLECTOR_BENCH_H

#include "scripted_cupti.h"
#include "worker/cuda/profiling/counters.h"

/* Counts how often it runs, in cupti.runs. It is prepared in a pass and before the range, and run in the range. */
extern const struct profiled_work bench_work;

/* Of the scripted device, which must not refuse. */
struct counters *counters_begin(void);
/* Closes it: CUPTI never stays behind. */
void counters_end(struct counters *counters);

/* As it is printed. The text lasts until the next call. */
const char *text_of(const struct outcome *outcome);

/* ---- a collection, whose work must succeed, and its outcome ---- */

const char *collect(struct counters *counters, unsigned tensors,
                    const struct profiled_work *works, size_t count,
                    double (*values)[QUANTITY_COUNT]);
/* Of the bench's work, launch by launch. */
const char *collect_launches(struct counters *counters, size_t launches, size_t most,
                             double (*values)[QUANTITY_COUNT]);
/* Of the bench's work once, or of its one launch; the counts do not matter. */
const char *collect_again(struct counters *counters);
const char *collect_launch_again(struct counters *counters);

#endif
