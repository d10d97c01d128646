/* The text at the end of a run: what was measured, what was not and why, and the roofs of the
 * devices. */
#ifndef ROOFSWEEP_REPORT_H
#define ROOFSWEEP_REPORT_H

#include <stdio.h>

#include "results/table.h"

/* Of long lists only the beginning, with the number of what is left out: the file has it all. Another
 * format than TABLE_TEXT is the table alone, with all rows. */
void report_print(const struct results *results, enum table_format format, FILE *stream);

#endif
