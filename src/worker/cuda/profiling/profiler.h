/* The profiler: the one owner of all that CUPTI has attached to this process. It traces and counts
 * pieces of work, and decides what stays attached in between.
 *
 * The counters are attached to count. They stay for collections that follow, because attaching them
 * takes longer than counting, and leave before anything is timed: beside counters that stand by
 * each kernel that follows another begins later ("Idle profiler in the process").
 *
 * The tracer stays attached from one trace to the next, idle, if that leaves the times of known
 * kernels alone. The profiler finds that out with its first trace.
 *
 * It knows nothing of workloads, records or devices: work comes in as callbacks, values and kernels
 * go out as plain data. Not thread-safe; one to a process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <cuda.h>

#include "base/status.h"
#include "model/outcome.h"
#include "model/quantity.h"
#include "model/profiled_work.h"
#include "worker/cuda/profiling/tracer.h"

/* What is attached now; each makes room for the other. */
enum profiler_attached { PROFILER_NOTHING, PROFILER_COUNTERS, PROFILER_TRACER };

/* What the profiler runs by itself. */
enum { PROFILER_TIMES = 2 };
struct profiler_host {
    /* s, that known kernels take: they show whether CUPTI disturbs times */
    enum status (*measure)(void *argument, double times[PROFILER_TIMES], struct error *error);
    enum status (*reserve)(void *argument, struct error *error); /* memory for counting */
    /* any kernel, to find out whether it is counted; leaves the device idle */
    enum status (*run)(void *argument, struct error *error);
    void *argument;
};

struct profiler;

/* NULL without memory. Nothing is attached. */
struct profiler *profiler_open(const struct profiler_host *host);
/* Takes NULL. Detaches the counters; what the tracer left attached goes with the process. */
void profiler_close(struct profiler *profiler);

enum profiler_attached profiler_attached(const struct profiler *profiler);

/* How much longer known kernels take beside the tracer that is attached, as judged: 1 up to noise.
 * NaN where it is not attached. */
double profiler_ratio(const struct profiler *profiler);

/* The counters leave, before anything is timed. */
void profiler_detach_counters(struct profiler *profiler);
/* All that is attached leaves, so that another process can count on this GPU. */
void profiler_detach(struct profiler *profiler);

/* ---- counters ---- */

/* Finds out whether the counters of this GPU (as CUDA numbers it in this process) can be read, the
 * first time that it is called. The outcome (enum counted) stays: COUNTED_YES, or why not and what
 * to do about it. Leaves nothing attached. Fails only with STATUS_DEVICE, or with what the trial's
 * run says. */
enum status profiler_try(struct profiler *profiler, int device, CUcontext context,
                         struct outcome *outcome, struct error *error);
/* That outcome; its code is OUTCOME_MISSING before. */
const struct outcome *profiler_counters(const struct profiler *profiler);

/* Whether the chip can count it at all. After profiler_try gave COUNTED_YES, as all that follow. */
bool profiler_has(const struct profiler *profiler, enum quantity quantity);

/* Counts pieces of work in one collection, as counters_collect: values[i] is of works[i]. */
enum status profiler_count(struct profiler *profiler, unsigned tensors,
                           const struct profiled_work *works, size_t count,
                           double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                           struct error *error);

/* Each launch of works by itself, as counters_collect_launches. */
enum status profiler_count_launches(struct profiler *profiler, unsigned tensors,
                                    const struct profiled_work *works, const size_t *launches,
                                    size_t count, size_t room, double (*values)[QUANTITY_COUNT],
                                    struct outcome *outcome, struct error *error);

/* ---- trace ---- */

/* Traces one run of the work. A trace that fails where CUPTI had stayed attached is repeated
 * without, and then CUPTI no longer stays. The outcome is an enum traced, with the reason. After
 * one that is TRACED_REFUSED all are, for that reason. */
enum status profiler_trace(struct profiler *profiler, const struct profiled_work *work,
                           struct outcome *outcome, struct error *error);
/* Without any launch where it failed. It lives until the next trace. */
const struct trace *profiler_last_trace(const struct profiler *profiler);
