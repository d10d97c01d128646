/* What the injection library is to do in a program: the worker says it in the environment.
 *
 *   ROOFSWEEP_INJECT    time, trace or count; without it the library does nothing
 *   ROOFSWEEP_REGION    profiler, all, or nvtx NAME
 *   ROOFSWEEP_REPORT    folder of what is handed back, see worker/program/handback.h
 *   ROOFSWEEP_IMAGE     count: file of the counter data, which goes from run to run
 *   ROOFSWEEP_TENSORS   count: the set of tensor quantities, see model/quantity.h
 */
#ifndef ROOFSWEEP_INJECT_TASK_H
#define ROOFSWEEP_INJECT_TASK_H

#include <stdbool.h>

enum task_kind { TASK_TIME, TASK_TRACE, TASK_COUNT };
enum task_region { TASK_PROFILER, TASK_ALL, TASK_NVTX };

struct task {
    enum task_kind kind;
    enum task_region region;
    char range[64]; /* TASK_NVTX: its name */
    char folder[4096], image[4096];
    unsigned tensors;
};

/* False: there is none. */
bool task_read(struct task *task);

#endif
