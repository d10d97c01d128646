/* The profiler: the one owner of everything that CUPTI attaches to this process. It traces and
 * counts pieces of work, and decides what stays attached in between.
 *
 * Counters stay attached for further collections, because attaching them takes longer than
 * counting. They are detached before anything is timed: beside idle counters each kernel that
 * follows another begins later (docs/measurements.md, "Idle profiler in the process").
 *
 * The tracer stays attached between traces if known kernels take the same time beside it, which the
 * first trace shows.
 *
 * The profiler knows no workloads, records or devices. Not thread-safe; one for a process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <cuda.h>

#include "base/status.h"
#include "model/outcome.h"
#include "model/quantity.h"
#include "model/profiled_work.h"
#include "worker/cuda/profiling/tracer.h"

/* Callbacks of the profiler's owner. */
enum { PROFILER_TIMES = 2 };
struct profiler_host {
    /* Times known kernels, s. Their times show whether CUPTI disturbs kernels. */
    enum status (*measure)(void *argument, double times[PROFILER_TIMES], struct error *error);
    /* Allocates memory that counting needs, before rows take all memory. */
    enum status (*reserve)(void *argument, struct error *error);
    /* Runs any kernel, as a trial of the counters; leaves the device idle. */
    enum status (*run)(void *argument, struct error *error);
    void *argument;
};

struct profiler;

/* Attaches nothing. NULL: no memory. */
struct profiler *profiler_open(const struct profiler_host *host);
/* Takes NULL. Detaches the counters; an attached tracer stays until the process ends. */
void profiler_close(struct profiler *profiler);

/* Returns time of known kernels beside the tracer / time without it; NaN: detached. */
double profiler_ratio(const struct profiler *profiler);

/* Detaches the counters, before anything is timed. */
void profiler_detach_counters(struct profiler *profiler);
/* Detaches everything, so that another process can count on this GPU. */
void profiler_detach(struct profiler *profiler);

/* ---- counters ---- */

/* Tests, at the first call, whether the counters of this GPU can be read. `device` is CUDA's
 * number of the GPU in this process. *outcome (enum counted) is COUNTED_YES, or the cause and its
 * remedy; later calls return the same. Counters stay attached. Fails with STATUS_DEVICE, or with
 * the status of the trial's run. */
enum status profiler_try(struct profiler *profiler, int device, CUcontext context,
                         struct outcome *outcome, struct error *error);
/* Returns the outcome of profiler_try; OUTCOME_MISSING before it. */
const struct outcome *profiler_counters(const struct profiler *profiler);

/* As counters_have. This function and profiler_count need the outcome COUNTED_YES. */
bool profiler_has(const struct profiler *profiler, enum quantity quantity);

/* As counters_collect. */
enum status profiler_count(struct profiler *profiler, unsigned tensors,
                           const struct profiled_work *works, size_t count, const size_t *launches,
                           size_t room, double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                           struct error *error);

/* ---- trace ---- */

/* Traces one run of the work. If a trace fails beside a tracer that stayed attached, the trace is
 * repeated, and from then on the tracer is attached for each trace alone. *outcome (enum traced)
 * has the reason of a failure. After TRACED_REFUSED all later traces are refused, too. */
enum status profiler_trace(struct profiler *profiler, const struct profiled_work *work,
                           struct outcome *outcome, struct error *error);
/* Returns the last trace, which has no launches if it failed; valid until the next trace. */
const struct trace *profiler_last_trace(const struct profiler *profiler);
