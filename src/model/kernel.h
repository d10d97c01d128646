/* Kernels and launches of a trace. The library that roofsweep injects into programs uses this file,
 * so it must not depend on JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/workload.h"

enum { KERNEL_NAME_MAX = 1024 };

/* Utilisation of units by a kernel, and states of its threads. Stalls have the vendor's names. */
enum activity {
    /* Fractions of the unit's peak: for DRAM and L2 in the kernel's traced time, for units of a
     * multiprocessor in the time in which it is active. */
    ACTIVITY_DRAM,
    ACTIVITY_L2,
    ACTIVITY_DATA_PIPE, /* L1 and shared memory */
    ACTIVITY_ISSUE,     /* issue slots */
    ACTIVITY_FMA,
    ACTIVITY_FP64,
    ACTIVITY_TENSOR,
    ACTIVITY_UNITS,                    /* number of units that can limit a kernel */
    ACTIVITY_THREADS = ACTIVITY_UNITS, /* occupancy: resident threads / their maximum */
    ACTIVITY_MULTIPROCESSORS,          /* active cycles / all cycles */
    /* Fractions of the time of all resident threads. */
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
    ACTIVITY_WAITS,                               /* the states that follow are no stalls */
    ACTIVITY_STALL_NOT_SELECTED = ACTIVITY_WAITS, /* ready, but another thread issued */
    ACTIVITY_STALL_SELECTED,                      /* the thread issued */
    ACTIVITY_COUNT
};
extern const char *const activity_name[ACTIVITY_COUNT + 1]; /* ends with NULL */

/* A kernel, or a CPU's OpenMP region. Launches with equal name, grid, block and resources are the
 * same kernel. */
struct kernel {
    char name[KERNEL_NAME_MAX]; /* demangled, cut at the end if longer */
    int64_t count;              /* launches in one iteration */
    double time;                /* s, sum over the launches of one traced iteration */
    int64_t grid_x, grid_y, grid_z, block_x, block_y, block_z;
    int64_t registers;                     /* per thread */
    int64_t static_shared, dynamic_shared; /* byte, per block */
    int64_t cluster;                       /* blocks of a cluster; 1: no clusters */
    int64_t resident;                      /* largest number of blocks on the device at a time */
    int64_t resident_limit;                /* bits: limits of `resident`, see kernel_limit_name */
    /* sums over the launches of one iteration, each counted alone; missing unless requested */
    double flops_counted;
    double bytes_counted[LEVEL_COUNT];
    double activity[ACTIVITY_COUNT]; /* mean over launches; missing unless requested */
};
extern const char *const kernel_limit_name[]; /* "threads", "registers", ..., NULL */

bool kernel_same(const struct kernel *a, const struct kernel *b);

struct launch {
    uint64_t start, end;  /* ns, on the device */
    uint32_t correlation; /* number of the call, given by the profiler in rising order */
    size_t kernel;        /* index of the kernel */
    uint64_t graph_node;  /* 0: launched without a graph */
};

/* Sorts by the call that launched. (A profiler delivers launches in the order of their ends.) */
void launches_sort(struct launch *launches, size_t count);

/* Returns the time, in s, in which at least one kernel runs. Sorts the launches by start. */
double launches_busy_time(struct launch *launches, size_t count);
