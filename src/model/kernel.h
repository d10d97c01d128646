/* Kernels and launches of a trace. This file does without JSON, because the library that is
 * injected into programs uses it, too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/workload.h"

enum { KERNEL_NAME_MAX = 1024 };

/* Utilisation of units by a kernel, and states of its threads. Stalls have the vendor's names. */
enum activity {
    /* Fractions of the peak. DRAM and L2: over the kernel's traced time. Units of a multiprocessor:
     * while the multiprocessor is active. */
    ACTIVITY_DRAM,
    ACTIVITY_L2,
    ACTIVITY_DATA_PIPE, /* L1 and shared memory */
    ACTIVITY_ISSUE,     /* issue slots */
    ACTIVITY_FMA,
    ACTIVITY_FP64,
    ACTIVITY_TENSOR,
    ACTIVITY_UNITS,                    /* number of units that can limit a kernel */
    ACTIVITY_THREADS = ACTIVITY_UNITS, /* occupancy: resident threads over their maximum */
    ACTIVITY_MULTIPROCESSORS,          /* active cycles over all cycles */
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
    ACTIVITY_WAITS,                               /* states from here on are not stalls */
    ACTIVITY_STALL_NOT_SELECTED = ACTIVITY_WAITS, /* another thread issued */
    ACTIVITY_STALL_SELECTED,                      /* the thread issued */
    ACTIVITY_COUNT
};
extern const char *const activity_name[ACTIVITY_COUNT + 1]; /* ends with NULL */

/* A distinct kernel of a record: name, grid, block and resources. On a CPU, an OpenMP region. */
struct kernel {
    char name[KERNEL_NAME_MAX]; /* demangled, cut at the end if longer */
    int64_t count;              /* launches in one iteration */
    double time;                /* s, trace run: all launches of one iteration together */
    int64_t grid_x, grid_y, grid_z, block_x, block_y, block_z;
    int64_t registers;                     /* per thread */
    int64_t static_shared, dynamic_shared; /* byte, per block */
    int64_t cluster;                       /* blocks of a cluster; 1: no clusters */
    int64_t resident;                      /* largest number of blocks on the device at a time */
    int64_t resident_limit;                /* bits: limits of `resident`, see kernel_limit_name */
    /* all launches of one iteration together, each counted separately; missing unless requested */
    double flops_counted;
    double bytes_counted[LEVEL_COUNT];
    double activity[ACTIVITY_COUNT]; /* mean over launches; missing unless requested */
};
extern const char *const kernel_limit_name[]; /* "threads", "registers", ..., NULL */

/* Compares name, grid, block and resources. */
bool kernel_same(const struct kernel *a, const struct kernel *b);

struct launch {
    uint64_t start, end;  /* ns, on the device */
    uint32_t correlation; /* the profiler's number of the call, rising */
    size_t kernel;        /* index of the kernel */
    uint64_t graph_node;  /* 0: launched without a graph */
};

/* Sorts by call. A profiler delivers launches as they end, on any stream. */
void launches_sort(struct launch *launches, size_t count);

/* s during which at least one kernel runs; kernels that overlap count once. Sorts by start. */
double launches_busy_time(struct launch *launches, size_t count);
