/* The global attributes of a result file: what the sweep was, who worked on it, and when. */
#ifndef ROOFSWEEP_GLOBALS_NC_H
#define ROOFSWEEP_GLOBALS_NC_H

#include "results/dataset.h"
#include "results/results.h"

void globals_write(struct dataset *set, const struct results *results);

#endif
