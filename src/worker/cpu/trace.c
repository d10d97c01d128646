#include "worker/cpu/trace.h"

#include <string.h>

#include "base/clock.h"

double trace_begin(const struct trace *trace)
{
    return trace ? clock_monotonic() : 0.0;
}

void trace_end(struct trace *trace, const char *name, double begin)
{
    if (!trace)
        return;
    size_t i = 0;
    while (i < trace->count && strcmp(trace->regions[i].name, name) != 0)
        ++i;
    if (i == trace->count) {
        trace->regions[i].name = name;
        trace->count++;
    }
    trace->regions[i].count++;
    trace->regions[i].time += clock_monotonic() - begin;
}
