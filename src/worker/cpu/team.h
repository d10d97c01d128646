/* The open CPU and its OpenMP team: binding and timing.
 *
 * The team has one thread on each core, bound from open to close. Each parallel region must have as
 * many threads as the team, because libgomp binds a new thread to the core of its parent. */
#pragma once

#include "worker/cpu/routine.h"
#include "worker/cpu/topology.h"
#include "worker/device_ops.h"

struct device_state {
    struct topology topology;
    void *flush;         /* buffer that flushes the caches; owned; NULL until the first cold row */
    size_t flush_size;   /* byte */
    struct roofs *roofs; /* owned by roofs.c; NULL unless tuned */
};

/* Binds each thread of the team to its core; also undoes team_unbind_caller. STATUS_DEVICE: OpenMP
 * makes a different number of threads, or a thread cannot be bound. */
enum status team_bind(const struct topology *topology, struct error *error);
/* Lets the calling thread run on all cores. Call it before a library opens parallel regions with
 * fewer threads than the team: libgomp ends the threads that such a region does not need, and
 * threads that it starts later inherit the caller's cores. */
void team_unbind_caller(const struct topology *topology);
/* As team_bind, after work that ended with `status`; returns `status` if all threads are bound. */
enum status team_bind_after(const struct topology *topology, enum status status,
                            struct error *error);
/* Restores the affinity that the process had, for all threads. */
void team_unbind(const struct topology *topology);

/* Runs one iteration. STATUS_FAILED: a library failed. */
enum status team_iterate(struct work *work, struct trace *trace, struct error *error);
/* As time and trace of device_ops. */
enum status team_time(struct device_state *state, struct work *work, bool cold, int samples,
                      double *seconds, struct record *record, struct error *error);
enum status team_trace(struct device_state *state, struct work *work, bool cold,
                       struct record *record, struct error *error);
