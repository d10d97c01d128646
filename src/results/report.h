/* The text at the end of a run: a table with a line for each row of the file, what was not measured
 * and why, and the roofs of the devices. The table is for people as text or Markdown, scaled and
 * with units; for programs as CSV or JSON, in SI units without a prefix, with what is missing left
 * empty or null, and with columns for which people have no room. */
#pragma once

#include <stdio.h>

#include "results/results.h"

enum table_format { TABLE_TEXT, TABLE_MARKDOWN, TABLE_CSV, TABLE_JSON };

/* Of long lists only the beginning, with the number of what is left out: the file has it all.
 * Another format than TABLE_TEXT is the table alone, with all rows. */
void report_print(const struct results *results, enum table_format format, FILE *stream);
