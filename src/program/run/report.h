/* Reports of a run, as lines in files of its folder.
 *
 * The program writes files of any name, as sweeps/programs/roofsweep_region.py does. Each process
 * writes a file of its own, and only one process opens regions.
 *
 *   region SECONDS             time of one region, by the program's clock
 *   verify ERROR TOLERANCE     relative error of its result, and the largest right one
 *
 * The injected library writes a file *.injected in each process that uses the device:
 *
 *   opened                     the region began
 *   closed SECONDS             the region ended; a timed program may have several
 *   kernel START END CORRELATION GRAPH_NODE GRID*3 BLOCK*3 REGISTERS STATIC DYNAMIC NAME    (ns)
 *   copy START END BYTES       a copy of memory; fill: likewise    (ns)
 *   untraced REASON            kernels are missing
 *   launched HASH COUNT        all launches of the region, in their order
 *   passes COUNT LAST          runs that counting takes; LAST 1: this was the last
 *   value QUANTITY NUMBER      a count of the region; QUANTITY: enum quantity
 *   each LAUNCH QUANTITY NUMBER   a count of one launch
 *   unloaded                   counted code was unloaded, so vector FLOPs may be wrong
 *   refused CODE REASON        nothing is counted; CODE: enum counted */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "model/outcome.h"
#include "model/quantity.h"
#include "model/record.h"
#include "program/run/scratch.h"

#define REPORT_VARIABLE "ROOFSWEEP_REPORT" /* of the environment: the folder */
enum { REPORT_REGIONS_MAX = 100000 };

/* The program's own report. */
struct report {
    double *regions; /* owned; s, in the order of the file */
    size_t region_count;
    double verify_error, verify_tolerance; /* of the worst result; NaN: none was reported */
};

/* STATUS_FAILED: an unknown line, regions in several files, or a file that is not a regular one. */
enum status report_read(const struct scratch *folder, struct report *report, struct error *error);
void report_clear(struct report *report);

/* Copies of memory, or fills. */
struct injected_moves {
    int64_t count;
    double bytes, time; /* sums; s */
};

/* The library's report. */
struct injected {
    size_t processes; /* that opened a region; the members below are of one of them */
    double *regions;  /* owned; s */
    size_t region_count;
    struct kernel *kernels; /* owned; count and time are of the whole region */
    size_t kernel_count;
    struct launch *launches; /* owned */
    size_t launch_count;
    size_t in_graphs; /* number of launches by CUDA graphs */
    bool ungraphed;   /* FLOPs come from a run without graphs, see injected_ungraph */
    struct injected_moves copies, fills;
    char untraced[256]; /* why kernels are missing; "" */
    char sequence[64];  /* "HASH COUNT" of the launches */
    size_t passes;
    bool last;     /* no pass is left */
    bool unloaded; /* counted code was unloaded, in this run or an earlier one of the passes */
    double values[QUANTITY_COUNT];
    double (*each)[QUANTITY_COUNT]; /* owned; by launch, in the order of the calls; NULL: none */
    size_t each_count;
    struct outcome refusal; /* OUTCOME_MISSING: counting was not refused */
};

/* Reads the library's report; the process with a region wins over processes without one.
 * STATUS_FAILED: an unknown line, or several processes with a region. */
enum status injected_read(const struct scratch *folder, struct injected *injected,
                          struct error *error);
void injected_init(struct injected *injected); /* an empty report */
void injected_clear(struct injected *injected);

/* Moves the counts of single launches. */
void injected_move_each(struct injected *to, struct injected *from);

/* The set of tensor quantities that a program of this precision is counted by; all of them but int8
 * for PRECISION_COUNT, a program of mixed precision. */
unsigned injected_tensors(enum precision precision);

/* Records launches, busy time, kernels, copies and fills of one iteration. */
enum status injected_record_trace(struct injected *traced, int64_t iterations,
                                  struct record *record, struct error *error);

/* Records FLOPs, bytes and unit of one iteration; `counted` is the last run. Where each launch was
 * counted, the record's kernels, which are the trace's, get their counts too. CUPTI counts vector
 * FLOPs of kernels in graphs as 0: they are missing in the record, and the outcome says so. */
void injected_record_counts(const struct injected *counted, struct injected *traced,
                            int64_t iterations, struct record *record);

/* Whether both regions ran the same kernels equally often. */
bool injected_same_kernels(const struct injected *a, const struct injected *b);
/* Takes vector FLOPs, and FLOPs by kernel, of a region with graphs from a region without graphs
 * that runs the same kernels. */
void injected_ungraph(struct injected *traced, struct injected *counted,
                      struct injected *plain_traced, struct injected *plain_counted);
