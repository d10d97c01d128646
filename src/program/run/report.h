/* Reports of a run: lines in files of its scratch folder.
 *
 * The program writes files of any name, as sweeps/programs/roofsweep_region.py does. Each process
 * writes a file of its own, and only one process opens regions.
 *
 *   region SECONDS             time of one region, by the program's clock
 *   verify ERROR TOLERANCE     relative error of the program's result, and the largest allowed one
 *   threads RUNNING SWITCHES [WAITING]   of one region, for CPUs: CPU time, involuntary context
 *                              switches, time in which threads were ready but off the processor, s
 *
 * The injected library writes a file *.injected in each process that uses the device:
 *
 *   opened                     the region began
 *   closed SECONDS             the region ended; a timed program may have several
 *   call END                   a call that launches kernels; calls come in their order    (ns)
 *   kernel START END CORRELATION GRAPH_NODE GRID*3 BLOCK*3 REGISTERS STATIC DYNAMIC CLUSTER
 *          RESIDENT LIMIT NAME                                                              (ns)
 *   copy START END BYTES       a copy of memory    (ns)
 *   fill START END BYTES       a fill of memory    (ns)
 *   untraced REASON            kernels are missing in the trace
 *   launched HASH COUNT        hash and number of all launches of the region, in their order
 *   passes COUNT LAST          number of passes that counting takes; LAST 1: no pass is left
 *   value QUANTITY NUMBER      a count of the region; QUANTITY: enum quantity
 *   each LAUNCH QUANTITY NUMBER   a count of the launch with this index
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
#include "worker/measure.h"

#define REPORT_VARIABLE "ROOFSWEEP_REPORT" /* environment variable with the path of the folder */
enum { REPORT_REGIONS_MAX = 100000 };

/* The program's own report. */
struct report {
    double *regions; /* owned; times in s, in the order of the file */
    size_t region_count;
    double verify_error, verify_tolerance; /* NaN: not reported; of several results the worst */
    /* Sums of the lines `threads`, without wall time. With region = all, the caller replaces them
     * by the occupancy of the whole run. */
    struct occupancy occupied;
    size_t occupied_count; /* number of lines `threads` */
};

/* STATUS_FAILED: a line is unknown, several files have regions, or a file is not a regular file. */
enum status report_read(const struct scratch *folder, struct report *report, struct error *error);
void report_clear(struct report *report);

/* All copies of memory in a region, or all fills. */
struct injected_moves {
    int64_t count;
    double bytes, time; /* sums; time in s */
};

/* The library's report. */
struct injected {
    size_t processes; /* number of processes that opened a region; other members have one process */
    double *regions;  /* owned; times in s */
    size_t region_count;
    struct kernel *kernels; /* owned; count and time cover the whole region */
    size_t kernel_count;
    struct launch *launches; /* owned */
    size_t launch_count;
    size_t in_graphs; /* number of kernels that CUDA graphs launch */
    uint64_t *calls;  /* owned; times of the lines `call` */
    size_t call_count;
    bool ungraphed; /* vector FLOPs come from a run without graphs, see injected_ungraph */
    struct injected_moves copies, fills;
    char untraced[256]; /* why kernels are missing in the trace; "": none is missing */
    char sequence[64];  /* hash and number of the launches, as in the line `launched` */
    size_t passes;      /* number of passes that counting takes */
    bool last;          /* no pass is left */
    bool unloaded;      /* counted code was unloaded, in this run or in the run of another pass */
    double values[QUANTITY_COUNT];
    double (*each)[QUANTITY_COUNT]; /* owned; counts of each launch, in order; NULL: not counted */
    size_t each_count;
    struct outcome refusal; /* OUTCOME_MISSING: counting was not refused */
};

/* Reads the library's report, from the process that opened a region if there is one.
 * STATUS_FAILED: a line is unknown, or several processes opened a region. */
enum status injected_read(const struct scratch *folder, struct injected *injected,
                          struct error *error);
void injected_init(struct injected *injected); /* makes an empty report */
void injected_clear(struct injected *injected);

/* Moves `each`, the counts of single launches. */
void injected_move_each(struct injected *to, struct injected *from);

/* The set of tensor quantities to count for a program of this precision. PRECISION_COUNT stands for
 * mixed precision: all tensor quantities but int8. */
unsigned injected_tensors(enum precision precision);

/* Records launches, busy time, kernels, copies and fills of one iteration, and whether the device
 * waited for the host in the timed region. The record must already have the region's time. */
enum status injected_record_trace(struct injected *traced, int64_t iterations,
                                  struct record *record, struct error *error);

/* Records FLOPs, bytes and unit of one iteration; `counted` comes from the run of the last pass. If
 * each launch was counted, the record's kernels, which come from the trace, also get their counts.
 * CUPTI counts the vector FLOPs of kernels in graphs as 0: in the record these FLOPs are missing,
 * and the outcome says why. */
void injected_record_counts(const struct injected *counted, struct injected *traced,
                            int64_t iterations, struct record *record);

/* Records the activities of each kernel, which are means over its launches. If some launch
 * lacks activities, the outcome of a counted row becomes COUNTED_WITHOUT_CAUSES. */
void injected_record_causes(const struct injected *causes, struct injected *traced,
                            struct record *record);

/* Whether both regions ran the same kernels equally often. */
bool injected_same_kernels(const struct injected *a, const struct injected *b);
/* Replaces the vector FLOPs, and the counts of each launch, of a region with graphs by the counts
 * of a region without graphs that runs the same kernels. */
void injected_ungraph(struct injected *traced, struct injected *counted,
                      struct injected *plain_traced, struct injected *plain_counted);
