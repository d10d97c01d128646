/* What the injection library found of a program, in its record. */
#ifndef ROOFSWEEP_WORKER_PROGRAM_COUNTS_H
#define ROOFSWEEP_WORKER_PROGRAM_COUNTS_H

#include "worker/program/injected.h"

/* The tensor quantities that a program of this precision is counted by; all of them for one that mixes
 * precisions. */
unsigned counts_tensors(enum precision precision);

/* Launches, busy time, kernels, copies and fills of one of the region's iterations. */
enum status counts_trace(struct injected *traced, int64_t iterations, struct record *record,
                         struct error *error);

/* FLOPs, bytes and unit of one of the region's iterations; `counted` is the last run. Where each launch was
 * counted, also those of the record's kernels, which are the trace's. Vector FLOPs of kernels in graphs are
 * counted as 0 by CUPTI: where the trace has such kernels, they are missing, and the outcome says so. */
void counts_record(const struct injected *counted, struct injected *traced, int64_t iterations,
                   struct record *record);

/* Both regions ran the same kernels, as often. */
bool counts_same_kernels(const struct injected *a, const struct injected *b);
/* Vector FLOPs, and FLOPs by kernel, of a region with graphs are those of one without, which has the same
 * kernels. */
void counts_ungraph(struct injected *traced, struct injected *counted,
                    struct injected *plain_traced, struct injected *plain_counted);

#endif
