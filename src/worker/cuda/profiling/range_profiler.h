/* CUPTI's range profiler in this process: attached, enabled, and told of one collection after another. Only
 * collector.c calls it.
 *
 * A collection: range_session_begin; for each pass range_pass_begin, for each piece of work range_begin and
 * range_end around its run, range_pass_end; then range_session_end in any case. Not thread-safe. */
#ifndef ROOFSWEEP_RANGE_PROFILER_H
#define ROOFSWEEP_RANGE_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>

#include "worker/cuda/profiling/metric_set.h"
#include "worker/cuda/profiling/module_watch.h"

enum { RANGE_NAME = 24 };

/* It is enabled only while CUPTI is attached to the process. Must not move: CUPTI has its watch's address. */
struct range_profiler {
    bool attached;
    CUpti_RangeProfiler_Object *object; /* NULL: not enabled */
    struct module_watch watch;          /* while it is enabled */
    /* What CUPTI was told when it was enabled. That cannot be changed: with another kind of range
     * PushRange fails, and another configuration is accepted, after which it counts wrong. */
    bool by_launch;
    unsigned tensors;
    size_t room; /* ranges */
    /* Owned, of the last collection. CUPTI may use them until it is told of others: nothing says
     * that it does not. */
    uint8_t *image;
    char (*names)[RANGE_NAME];
};

/* One collection. */
struct range_session {
    bool by_launch; /* a range of its own for each kernel; otherwise for each piece of work */
    unsigned tensors;
    size_t count; /* of what there are values of: the last ranges, or all */
    size_t
        room; /* for so many ranges; each costs time when CUPTI is attached, and at its collections */
    CUpti_RangeProfiler_Object *profiler;
    uint8_t *image; /* owned: counter data */
    size_t image_size;
    char (*names)[RANGE_NAME]; /* owned: of the ranges */
};

/* Nothing happens if it is attached. */
CUptiResult range_profiler_attach(struct range_profiler *profiler);
void range_profiler_detach(struct range_profiler *profiler);
/* It was enabled for what this collection needs, and all code that it may have counted is still there. */
bool range_profiler_suits(const struct range_profiler *profiler,
                          const struct range_session *session);

/* Enables the profiler where it does not suit, and makes room for the counts. */
CUptiResult range_session_begin(struct range_session *session, struct range_profiler *profiler,
                                CUcontext context, const struct metric_set *set);
/* CUPTI may hold on to the last collection's memory until it has been told of this one's, or has left. What
 * went wrong may have left a pass open: the next collection begins afresh. On a lost device nothing is
 * called. */
void range_session_end(const struct range_session *session, struct range_profiler *profiler,
                       bool well, bool lost);

CUptiResult range_pass_begin(struct range_session *session);
/* *last: CUPTI has all passes. */
CUptiResult range_pass_end(struct range_session *session, bool *last);
/* The name is the number: what comes back is known by it. */
CUptiResult range_begin(struct range_session *session, size_t number);
CUptiResult range_end(struct range_session *session);

#endif
