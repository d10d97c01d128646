/* The parallel regions of a traced run. */
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
