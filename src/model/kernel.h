/* Kernels and their launches, as a trace has them. Knows no JSON: what is loaded into programs has
 * it, too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/workload.h"

enum { KERNEL_NAME_MAX = 1024 };

/* What a kernel keeps busy, and what its threads wait for. Stalls have the names that the vendor
 * gives them. */
enum activity {
    /* Of the peak: device memory and L2 in the kernel's traced time, units of a multiprocessor
     * while that is active. */
    ACTIVITY_DRAM,
    ACTIVITY_L2,
    ACTIVITY_DATA_PIPE, /* of L1 and shared memory */
    ACTIVITY_ISSUE,     /* slots to issue instructions */
    ACTIVITY_FMA,
    ACTIVITY_FP64,
    ACTIVITY_TENSOR,
    ACTIVITY_UNITS,                    /* so many can be what limits a kernel */
    ACTIVITY_THREADS = ACTIVITY_UNITS, /* places for threads */
    ACTIVITY_MULTIPROCESSORS,          /* of all their cycles those in which they are active */
    /* Of the time of all threads that are there. */
    ACTIVITY_STALL_BARRIER,
    ACTIVITY_STALL_BRANCH_RESOLVING,
    ACTIVITY_STALL_DISPATCH_STALL,
    ACTIVITY_STALL_DRAIN,
    ACTIVITY_STALL_GMMA,
    ACTIVITY_STALL_IMC_MISS,
    ACTIVITY_STALL_LG_THROTTLE,
    ACTIVITY_STALL_LONG_SCOREBOARD,
    ACTIVITY_STALL_MATH_PIPE_THROTTLE,
    ACTIVITY_STALL_MEMBAR,
    ACTIVITY_STALL_MIO_THROTTLE,
    ACTIVITY_STALL_MISC,
    ACTIVITY_STALL_NO_INSTRUCTION,
    ACTIVITY_STALL_SHORT_SCOREBOARD,
    ACTIVITY_STALL_SLEEPING,
    ACTIVITY_STALL_TEX_THROTTLE,
    ACTIVITY_STALL_WAIT,
    ACTIVITY_WAITS,                               /* from here on a thread waits for nothing */
    ACTIVITY_STALL_NOT_SELECTED = ACTIVITY_WAITS, /* another one issued */
    ACTIVITY_STALL_SELECTED,                      /* it issued */
    ACTIVITY_COUNT
};
extern const char *const activity_name[ACTIVITY_COUNT + 1]; /* ends with NULL */

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
    int64_t resident_limit; /* bits: what allows no more of them, kernel_limit_name */
    /* all launches of one iteration together, each counted by itself; missing unless asked for */
    double flops_counted;
    double bytes_counted[LEVEL_COUNT];
    double activity[ACTIVITY_COUNT]; /* mean of its launches; as the two above */
};
extern const char *const kernel_limit_name[]; /* "threads", "registers", ..., NULL */

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
