/* The report at the end of a run. As text, for people: a line for each row of the file, reasons of
 * rows without a time, and the roofs of the devices. As JSON, for programs: all rows in SI units,
 * with null for missing values. CSV and Markdown are roofsweep-post's. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "results/results.h"

/* The text has the beginning of long lists and the number of lines that it leaves out. JSON is the
 * table alone. */
void report_print(const struct results *results, bool json, bool colour, FILE *stream);
