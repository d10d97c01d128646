/* The text at the end of a run: what was measured, what was not and why, and the roofs of the
 * devices. */
#ifndef ROOFSWEEP_REPORT_H
#define ROOFSWEEP_REPORT_H

#include <stdio.h>

#include "results/results.h"

/* Of long lists only the beginning, with the number of what is left out: the file has it all. */
void report_print(const struct results *results, FILE *stream);

#endif
