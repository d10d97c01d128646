/* What the injection library of a device has left in the folder of a run: files *.injected, one for each
 * process of the program that used the device. Their lines:
 *
 *   opened                                the region has begun
 *   closed SECONDS                        and ended; a timed program may have several
 *   kernel START END CORRELATION GRAPH_NODE GRID*3 BLOCK*3 REGISTERS STATIC DYNAMIC NAME    (ns)
 *   copy START END BYTES                  of memory; fill: the same     (ns)
 *   untraced REASON                       the kernels are not complete
 *   launched HASH COUNT                   of all launches of the region, in their order
 *   passes COUNT LAST                     runs that counting takes; 1: this was the last
 *   value QUANTITY NUMBER                 what was counted, by enum quantity
 *   each LAUNCH QUANTITY NUMBER           the same of one of the region's launches
 *   unloaded                              vector FLOPs may be wrong: counted code was unloaded
 *   refused CODE REASON                   nothing is counted (enum counted) */
#ifndef ROOFSWEEP_WORKER_PROGRAM_INJECTED_H
#define ROOFSWEEP_WORKER_PROGRAM_INJECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "model/outcome.h"
#include "model/quantity.h"
#include "model/record.h"

#define INJECTED_SUFFIX ".injected"

struct injected_launch {
    uint64_t start, end;  /* ns */
    uint32_t correlation; /* rises with every call of the program */
    size_t kernel;        /* of `kernels` */
};

/* Copies of memory, or fills. */
struct injected_moves {
    int64_t count;
    double bytes, time; /* time: s, all together */
};

struct injected {
    size_t processes; /* that opened the region; what follows is of one of them */
    double *regions;  /* owned; s */
    size_t region_count;
    struct kernel *kernels; /* owned; count and time are of the whole region */
    size_t kernel_count;
    struct injected_launch *launches; /* owned */
    size_t launch_count, in_graphs;   /* kernels, and those of them that a graph launched */
    bool ungraphed;                   /* FLOPs are of a run without graphs, see counts_ungraph */
    struct injected_moves copies, fills;
    char untraced[256]; /* ""; or why kernels are missing */
    char sequence[64];  /* "HASH COUNT" */
    size_t passes;
    bool last;
    bool unloaded; /* counted code, by this run or by one that it goes on from */
    double values[QUANTITY_COUNT];
    double (
        *each)[QUANTITY_COUNT]; /* owned; by launch, in the order of the calls; NULL: not counted */
    size_t each_count;
    struct outcome refusal; /* its code is OUTCOME_MISSING unless counting was refused */
};

/* STATUS_FAILED: a line means nothing, or several processes opened the region. */
enum status injected_read(const char *folder, struct injected *injected, struct error *error);
void injected_init(struct injected *injected); /* nothing was found */
void injected_clear(struct injected *injected);

/* s, in which at least one kernel of the region ran. */
double injected_busy(struct injected *injected);

#endif
