/* The open scripted GPU with all that the CUDA worker keeps for it: see scripted_vendor.h. */
#ifndef ROOFSWEEP_SCRIPTED_BENCH_H
#define ROOFSWEEP_SCRIPTED_BENCH_H

#include <stdbool.h>

#include "model/roof.h"
#include "scripted_vendor.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/profiling/profiler.h"
#include "worker/gpu/roofs.h"

extern struct bench {
    struct gpu gpu;
    struct profiler *profiler;
    struct roofs *roofs;
    char counters[OUTCOME_TEXT]; /* the outcome when they were last tried, "" before */
} bench;

/* For cmocka: an H200 alone, open; and nothing is left of it, whatever a test did. */
int bench_set_up(void **state);
int bench_tear_down(void **state);
/* Between them: closes it, which leaves nothing, and opens what the script describes now. */
void bench_close(void);
void bench_open(void);

/* As device.c does it: with `prove` the counters are tried, and used; what was tuned before is
 * kept. */
enum status bench_tune(const struct roof_request *request, bool prove, bool found[ROOF_KINDS],
                       struct error *error);
void bench_release_roofs(void);

#endif
