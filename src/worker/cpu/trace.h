/* What the parallel regions of one iteration took, by name. */
#ifndef ROOFSWEEP_CPU_TRACE_H
#define ROOFSWEEP_CPU_TRACE_H

#include <stddef.h>
#include <stdint.h>

/* Every function takes NULL for a trace; then nothing is timed. */
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

#endif
