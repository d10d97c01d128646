/* CUPTI as a part of this process: brought in, and taken out again. While it is there every launch
 * takes longer. */
#ifndef ROOFSWEEP_CUPTI_PROCESS_H
#define ROOFSWEEP_CUPTI_PROCESS_H

#include <cupti_result.h>

/* For the range profiler; the activity API brings CUPTI in by itself. */
CUptiResult cupti_attach(void);

/* Safe where nothing is running, and where CUPTI is not there. */
void cupti_detach(void);

#endif
