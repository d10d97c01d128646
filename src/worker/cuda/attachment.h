/* When CUPTI is part of this process: while something is traced or counted, as it makes every launch
 * dearer; and between countings, if counters.c lets the profiler stand by. */
#ifndef ROOFSWEEP_ATTACHMENT_H
#define ROOFSWEEP_ATTACHMENT_H

#include <cupti.h>

/* For the profiler; the activity API attaches by itself. */
CUptiResult attachment_begin(void);
/* Takes CUPTI out again. Safe where nothing is running. */
void attachment_end(void);

#endif
