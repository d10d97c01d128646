/* The table of a run: a line for each row of the file, in the order in which people read them. For people as text
 * or Markdown, scaled and with units; for programs as CSV or JSON, in SI units without a prefix, with what is
 * missing left empty or null, and with columns for which people have no room. */
#ifndef ROOFSWEEP_TABLE_H
#define ROOFSWEEP_TABLE_H

#include <stdio.h>

#include "results/results.h"

enum table_format { TABLE_TEXT, TABLE_MARKDOWN, TABLE_CSV, TABLE_JSON };

struct table;

/* The results must outlive it. NULL without memory. */
struct table *table_create(const struct results *results);
void table_destroy(struct table *table); /* takes NULL */

const struct row *table_row(const struct table *table, size_t line);
/* The label, and what distinguishes the row within it: "batch precision=fp16". */
void table_name(const struct table *table, size_t line, char name[WORKLOAD_TEXT]);

/* Text has no more than the first lines, and says how many are left out; the others have all of them. */
void table_print(const struct table *table, enum table_format format, FILE *stream);

#endif
