/* The profiler: the one owner of all that CUPTI has attached to this process. It traces and counts pieces
 * of work, and decides whether CUPTI stays attached in between.
 *
 * Attaching CUPTI takes far longer than counting, and the processes of a node wait for each other over
 * it. So it stays attached between uses, idle, if that leaves the times of known kernels alone and
 * counts stay right. The profiler finds that out with its first trace or collection, and looks again
 * after whatever may have changed it. After a collection of several works the counters always leave:
 * from then on each kernel that follows another would begin later ("Idle profiler in the process").
 *
 * It knows nothing of workloads, records or devices: work comes in as callbacks, values and kernels go
 * out as plain data. Not thread-safe; one to a process. */
#ifndef ROOFSWEEP_PROFILER_H
#define ROOFSWEEP_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <cuda.h>

#include "base/status.h"
#include "model/outcome.h"
#include "model/quantity.h"
#include "worker/cuda/profiling/profiled_work.h"
#include "worker/cuda/profiling/tracer.h"

/* What is attached between two uses, and what has been decided. These are all changes:
 *
 *   from            to              when
 *   UNDECIDED       ON_TRIAL        the counters have been tried, or profiler_keep and a collection
 *   UNDECIDED       TRACER_STAYS    the first trace of a process whose counters nobody has opened
 *   UNDECIDED       LEAVES          the counters, now tried, are refused; the tracer had left for good
 *   ON_TRIAL        UNDECIDED       profiler_leave; a collection failed
 *   ON_TRIAL        COUNTERS_STAY   the first collection by profiler_count succeeded
 *   TRACER_STAYS    LEAVES          times are disturbed; a trace failed; the counters are to be tried
 *   COUNTERS_STAY   COUNTERS_LOST   a collection failed, or was of several works; profiler_lend
 *   COUNTERS_STAY   LEAVES          times are disturbed; counts differ; a trace failed; a collection
 *                                   succeeded only with CUPTI attached anew
 *   COUNTERS_LOST   COUNTERS_STAY   the next collection succeeded
 *   COUNTERS_LOST   TRACER_BETWEEN  a trace
 *   COUNTERS_LOST   LEAVES          counts differ
 *   TRACER_BETWEEN  COUNTERS_LOST   before the next collection; profiler_lend
 *   TRACER_BETWEEN  LEAVES          times are disturbed; a trace failed
 *   LEAVES          ON_TRIAL        the counters are tried where only the tracer had left for good
 */
enum profiler_state {
    PROFILER_UNDECIDED, /* nothing is attached */
    PROFILER_ON_TRIAL,  /* the counters are, undecided: they must leave before anything is timed */
    PROFILER_TRACER_STAYS,  /* attached by the tracer, for good */
    PROFILER_COUNTERS_STAY, /* attached by the counters, for good */
    PROFILER_COUNTERS_LOST, /* nothing is attached; the counters come back with the next collection */
    PROFILER_TRACER_BETWEEN, /* attached by the tracer; the counters come back in its place */
    PROFILER_LEAVES, /* nothing is attached, for good: each use attaches and detaches CUPTI */
    PROFILER_STATES
};
bool profiler_may_change(enum profiler_state from, enum profiler_state to);

/* Known kernels, which show whether CUPTI disturbs times. */
enum { PROFILER_TIMES = 2 };
struct profiler_judge {
    /* s; NULL: nobody times anything in this process, so that CUPTI always may stay attached. */
    enum status (*measure)(void *argument, double times[PROFILER_TIMES], struct error *error);
    void *argument;
};

/* What the profiler runs by itself to find out whether it counts. */
struct profiler_trial {
    enum status (*reserve)(void *argument,
                           struct error *error); /* memory for counting; NULL: none */
    enum status (*run)(void *argument,
                       struct error *error); /* any kernel; leaves the device idle */
    void *argument;
};

struct profiler;

/* NULL without memory. Nothing is attached. */
struct profiler *profiler_open(const struct profiler_judge *judge,
                               const struct profiler_trial *trial);
/* Takes NULL. Detaches the counters; what the tracer left attached goes with the process. */
void profiler_close(struct profiler *profiler);

enum profiler_state profiler_state(const struct profiler *profiler);
/* Whether the next collection by profiler_count decides if CUPTI stays attached. */
bool profiler_is_undecided(const struct profiler *profiler);

/* How much longer known kernels take with what stays attached, as last judged: 1 up to noise. NaN where
 * nothing stays attached. */
double profiler_ratio(const struct profiler *profiler);

/* ---- counters ---- */

/* Finds out whether the counters of this GPU (as CUDA numbers it in this process) can be read, the
 * first time that it is called; then CUPTI is attached until profiler_leave. The outcome (enum counted)
 * stays: COUNTED_YES, or why not and what to do about it. Fails only with STATUS_DEVICE, or with what
 * the trial's run says. */
enum status profiler_try(struct profiler *profiler, int device, CUcontext context,
                         struct outcome *outcome, struct error *error);
/* The counters of the GPU are free for another process, until the next trace or collection. */
void profiler_lend(struct profiler *profiler);
/* That outcome; its code is OUTCOME_MISSING before. */
const struct outcome *profiler_counters(const struct profiler *profiler);

/* Whether the chip can count it at all. After profiler_try gave COUNTED_YES, as all that follow. */
bool profiler_has(const struct profiler *profiler, enum quantity quantity);

/* Counts pieces of work in one collection, as collector_collect: values[i] is of works[i]. Decides with
 * the first work whether CUPTI stays attached: it must count the same again, after something else was
 * counted, and leave the times of known kernels alone. */
enum status profiler_count(struct profiler *profiler, unsigned tensors,
                           const struct profiled_work *works, size_t count,
                           double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                           struct error *error);

/* The same, but decides nothing. */
enum status profiler_collect(struct profiler *profiler, unsigned tensors,
                             const struct profiled_work *works, size_t count,
                             double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                             struct error *error);

/* Each launch of a work by itself, as collector_collect_launches: values[i] is of launch i. */
enum status profiler_count_launches(struct profiler *profiler, unsigned tensors,
                                    const struct profiled_work *work, size_t launches, size_t most,
                                    double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                                    struct error *error);

/* After counting, before the next work is timed. Counters that stay attached are judged anew if they
 * count more than when they were last judged, or if they were lost since. */
enum status profiler_review(struct profiler *profiler, struct error *error);

/* ---- trace ---- */

/* Traces one run of the work. A trace that fails where CUPTI had stayed attached is repeated without,
 * and then CUPTI leaves for good. The outcome is an enum traced, with the reason, or OUTCOME_MISSING:
 * an earlier trace was refused, and there will be none. */
enum status profiler_trace(struct profiler *profiler, const struct profiled_work *work,
                           struct outcome *outcome, struct error *error);
/* Without any launch where it failed. It lives until the next trace. */
struct trace profiler_last_trace(const struct profiler *profiler);

/* ---- undecided ---- */

/* Before anything is timed: what is only on trial is detached. */
void profiler_leave(struct profiler *profiler);
/* From the next collection on CUPTI stays attached, on trial, until profiler_leave. */
void profiler_keep(struct profiler *profiler);

#endif
