/* The open CPU and its OpenMP team: threads, their regions by name, and the time of a work.
 *
 * The team has one thread on each core, bound to it from open to close. libgomp binds a new thread
 * to the core of its parent. So no parallel region may ask for another number of threads. */
#pragma once

#include "worker/cpu/topology.h"
#include "worker/device_ops.h"

struct device_state {
    struct topology topology;
    void *flush; /* for cold caches; created when first needed, owned */
    size_t flush_size;
    struct roofs *roofs; /* NULL unless they are tuned; roofs.c */
};

/* STATUS_DEVICE if OpenMP gives another number of threads, or one cannot be bound. Again after
 * team_loosen. */
enum status team_bind(const struct topology *topology, struct error *error);
/* The calling thread may run on all cores: libgomp ends the threads that a smaller region does not
 * need, and a new one has the cores of the thread that starts it. Needed around a library that asks
 * for regions of its own sizes. */
void team_loosen(const struct topology *topology);
/* All threads may run where the process could. */
void team_unbind(const struct topology *topology);

/* What the parallel regions of one iteration took, by name. Both functions take NULL for a trace;
 * then nothing is timed. */
struct trace {
    struct {
        const char *name; /* lives for ever */
        int64_t count;
        double time; /* s */
    } regions[8];
    size_t count;
};
double trace_begin(const struct trace *trace);
void trace_end(struct trace *trace, const char *name, double begin);

/* The members time and trace of device_ops. */
enum status team_time(struct device_state *state, struct work *work, bool cold, int samples,
                      double *seconds, struct record *record, struct error *error);
enum status team_trace(struct device_state *state, struct work *work, bool cold,
                       struct record *record, struct error *error);
