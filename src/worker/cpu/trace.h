/* Readings of a timed or traced run: its parallel regions, and the times of the process. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The parallel regions of one iteration, by name. Both functions do nothing if the trace is NULL.
 */
struct trace {
    struct {
        const char *name; /* a literal, or owned by the work */
        int64_t count;
        double time; /* s */
    } regions[8];
    size_t count;
};
double trace_begin(const struct trace *trace);
void trace_end(struct trace *trace, const char *name, double begin);

/* Times and counts of the process since it began, or between two readings. */
struct occupancy {
    double wall, running; /* s; running: CPU time of all threads */
    double waiting;       /* s in which threads were ready, but off the processor; NaN: unknown */
    int64_t switches;     /* involuntary context switches */
};
