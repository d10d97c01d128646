/* When CUPTI is part of this process: while something is traced or counted, as it makes every launch
 * dearer; and idle in between, where the profiler or the tracer stands by. */
#ifndef ROOFSWEEP_ATTACHMENT_H
#define ROOFSWEEP_ATTACHMENT_H

#include <stdbool.h>
#include <cupti.h>

/* For the profiler; the activity API attaches by itself. */
CUptiResult attachment_begin(void);
/* Takes CUPTI out again. Safe where nothing is running. */
void attachment_end(void);
/* Takes it out for one that stands by, which then no longer does. */
void attachment_drop(bool *stands_by);

#endif
