/* Kernels and their launches, as a trace has them. Knows no JSON: what is loaded into programs has
 * it, too. */
#ifndef ROOFSWEEP_KERNEL_H
#define ROOFSWEEP_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/workload.h"

enum { KERNEL_NAME_MAX = 1024 };

/* One distinct kernel of a record: same name, grid, block and resources. On a CPU, one OpenMP
 * region. */
struct kernel {
    char name[KERNEL_NAME_MAX]; /* demangled, cut at the end if longer */
    int64_t count;              /* launches in one iteration */
    double time;                /* s, all launches of one iteration together, from the trace run */
    int64_t grid_x, grid_y, grid_z, block_x, block_y, block_z;
    int64_t registers;                     /* per thread */
    int64_t static_shared, dynamic_shared; /* byte, per block */
    int64_t cluster;                       /* blocks that run together; 1: there are no clusters */
    int64_t resident;                      /* blocks that the whole device holds at a time */
    /* all launches of one iteration together, each counted by itself; missing unless asked for */
    double flops_counted;
    double bytes_counted[LEVEL_COUNT];
};

/* By name, grid, block and resources. */
bool kernel_same(const struct kernel *a, const struct kernel *b);

struct launch {
    uint64_t start, end;  /* ns, on the device */
    uint32_t correlation; /* the profiler's number of the call, which rises with every call */
    size_t kernel;        /* the place of its kernel */
    uint64_t graph_node;  /* 0: it was launched by itself */
};

/* In the order of their calls. A profiler hands them over as they end, on whatever stream. */
void launches_sort(struct launch *launches, size_t count);

/* s, in which at least one of them ran: kernels on several streams may run at the same time, which
 * counts once. Leaves them in the order of their starts. */
double launches_busy_time(struct launch *launches, size_t count);

#endif
