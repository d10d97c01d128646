/* A profiler over a scripted CUPTI (scripted_cupti.h), with work, known kernels and trials that do
 * what a test wants. For tests only. */
#ifndef ROOFSWEEP_TEST_PROFILER_BENCH_H
#define ROOFSWEEP_TEST_PROFILER_BENCH_H

#include <stdbool.h>

#include "scripted_cupti.h"
#include "worker/cuda/profiling/profiler.h"

extern struct profiler *profiler;

/* What the callbacks do. */
struct profiler_script {
    double disturbed;                  /* factor of known kernels' times while CUPTI is there, */
    int disturbances;                  /* so often; 0: always */
    enum status judge, reserve;        /* of known kernels, and of the trial's memory, */
    enum status judge_later;           /* of known kernels while CUPTI is there */
    enum status prepare, run;          /* and of the work; each but STATUS_OK with an error */
    int judged, prepared, runs, holds; /* how often they were called */
    CUptiResult start_from_now; /* what the first run of the work makes of all later starts */
};
extern struct profiler_script test;

/* Runs the script's work. */
extern const struct profiled_work work;
enum status work_prepare(void *argument, struct error *error);
enum status work_run(void *argument, struct error *error);

int profiler_set_up(void **state);
int profiler_tear_down(void **state);                  /* the counters never stay behind */
void assert_attached(enum profiler_attached attached); /* and a ratio where it is the tracer */

/* ---- steps ---- */

struct outcome try_counters(void);
struct outcome count(unsigned tensors);
void count_well(unsigned tensors);
/* Preflight, then a first collection. */
void begin_counting(void);
struct outcome trace(void);
void trace_well(void);
/* A kernel for the next trace. */
void add_record(const char *name, uint32_t correlation, uint64_t nanoseconds);

#endif
