/* The report at the end of a run. The text is for people: a line for each row of the file, the
 * reasons why rows have no time, and the devices. JSON is for programs: all rows in SI
 * units, with null for missing values. roofsweep-post writes CSV and Markdown. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "results/results.h"

/* Prints the report. The text cuts long lists and gives the number of lines that it leaves out.
 * JSON has only the rows. terminal: descriptor of the terminal that shows the text; -1: none. */
void report_print(const struct results *results, bool json, int terminal, FILE *stream);
