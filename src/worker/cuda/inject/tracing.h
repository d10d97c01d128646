/* The kernels, copies and fills of a region, as lines of the notes, by CUPTI's activity records:
 *
 *   kernel START END CORRELATION GRAPH_NODE GRID*3 BLOCK*3 REGISTERS STATIC DYNAMIC NAME
 *   copy START END BYTES
 *   fill START END BYTES
 *
 * Times are in ns. GRAPH_NODE is 0 of a kernel that was launched by itself. One to a process. */
#ifndef ROOFSWEEP_INJECT_TRACING_H
#define ROOFSWEEP_INJECT_TRACING_H

#include <cupti_result.h>

#include "worker/cuda/inject/notes.h"

/* Before the program does anything: a graph is traced if it was made after this. */
CUptiResult tracing_enable(void);
/* With the device idle. Kernels from now on are noted. */
CUptiResult tracing_begin(struct notes *notes);
/* With the device idle: all of them have been. *problem is why some are missing; NULL: none is. */
CUptiResult tracing_end(const char **problem);

#endif
