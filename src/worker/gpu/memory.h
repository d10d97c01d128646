/* Device memory, asked for with a reason that people can read. */
#ifndef ROOFSWEEP_GPU_MEMORY_H
#define ROOFSWEEP_GPU_MEMORY_H

#include "base/status.h"

/* Of the current device, freed with cudaFree; `what` names it in the message "NEEDS of WHAT, FREE are
 * free". No bytes: NULL. STATUS_UNSUPPORTED if so much is not free. */
enum status memory_allocate(double bytes, const char *what, void **memory, struct error *error);

/* STATUS_UNSUPPORTED if so much is not free now. */
enum status memory_check(double bytes, const char *what, struct error *error);

#endif
