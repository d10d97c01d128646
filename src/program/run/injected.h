/* What the injection library of a device has left in the folder of a run: files *.injected, one for
 * each process of the program that used the device. Their lines:
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
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "model/outcome.h"
#include "model/quantity.h"
#include "model/record.h"
#include "program/run/scratch.h"

#define INJECTED_SUFFIX ".injected"

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
    struct launch *launches;        /* owned */
    size_t launch_count, in_graphs; /* kernels, and those of them that a graph launched */
    bool ungraphed;                 /* FLOPs are of a run without graphs, see injected_ungraph */
    struct injected_moves copies, fills;
    char untraced[256]; /* ""; or why kernels are missing */
    char sequence[64];  /* "HASH COUNT" */
    size_t passes;
    bool last;
    bool unloaded; /* counted code, by this run or by one that it goes on from */
    double values[QUANTITY_COUNT];
    double (*each)[QUANTITY_COUNT]; /* owned; by launch, in the order of the calls; NULL: none */
    size_t each_count;
    struct outcome refusal; /* its code is OUTCOME_MISSING unless counting was refused */
};

/* Whether the file is one of the library's, by its name. */
bool injected_is(const char *name);
/* STATUS_FAILED: a line means nothing, or several processes opened the region. */
enum status injected_read(const struct scratch *folder, struct injected *injected,
                          struct error *error);
void injected_init(struct injected *injected); /* nothing was found */
void injected_clear(struct injected *injected);

/* Counts of single launches are taken from one to the other. */
void injected_move_each(struct injected *to, struct injected *from);

/* The tensor quantities that a program of this precision is counted by; all of them for one that
 * mixes precisions. */
unsigned injected_tensors(enum precision precision);

/* Launches, busy time, kernels, copies and fills of one of the region's iterations. */
enum status injected_record_trace(struct injected *traced, int64_t iterations,
                                  struct record *record, struct error *error);

/* FLOPs, bytes and unit of one of the region's iterations; `counted` is the last run. Where each
 * launch was counted, also those of the record's kernels, which are the trace's. Vector FLOPs of
 * kernels in graphs are counted as 0 by CUPTI: where the trace has such kernels, they are missing,
 * and the outcome says so. */
void injected_record_counts(const struct injected *counted, struct injected *traced,
                            int64_t iterations, struct record *record);

/* Both regions ran the same kernels, as often. */
bool injected_same_kernels(const struct injected *a, const struct injected *b);
/* Vector FLOPs, and FLOPs by kernel, of a region with graphs are those of one without, which has
 * the same kernels. */
void injected_ungraph(struct injected *traced, struct injected *counted,
                      struct injected *plain_traced, struct injected *plain_counted);
