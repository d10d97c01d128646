/* What the injection library is to do in a program: the worker says it in the environment.
 *
 *   ROOFSWEEP_INJECT    time, trace, count, or profile: traces the first region and counts in those that
 *                       follow; without it the library does nothing
 *   ROOFSWEEP_REGION    profiler, all, or nvtx NAME
 *   ROOFSWEEP_REPORT    folder of what is handed back, see worker/program/handback.h
 *   ROOFSWEEP_IMAGE     count, profile: file of the counter data, which goes from run to run
 *   ROOFSWEEP_TENSORS   count, profile: the set of tensor quantities, see model/quantity.h
 *   ROOFSWEEP_REGIONS   count, profile: that the program opens
 *   ROOFSWEEP_RANGES    count, profile: region; launches: each kernel by itself, where the regions do;
 *                       replay: the same, repeated by CUPTI
 *   ROOFSWEEP_LAUNCHES  count: of a region, as traced
 */
#ifndef ROOFSWEEP_INJECT_TASK_H
#define ROOFSWEEP_INJECT_TASK_H

#include <stdbool.h>
#include <stddef.h>

enum task_kind { TASK_TIME, TASK_TRACE, TASK_COUNT, TASK_PROFILE };
enum task_region { TASK_PROFILER, TASK_ALL, TASK_NVTX };
enum task_ranges { TASK_REGION, TASK_LAUNCHES, TASK_REPLAY };

struct task {
    enum task_kind kind;
    enum task_region region;
    char range[64]; /* TASK_NVTX: its name */
    char folder[4096], image[4096];
    unsigned tensors;
    enum task_ranges ranges;
    size_t regions, launches;
};

/* False: there is none. */
bool task_read(struct task *task);

#endif
