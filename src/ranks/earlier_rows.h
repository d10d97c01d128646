/* Which items of a plan a journal already holds, found by their hashes: the manifest may have changed since. */
#ifndef ROOFSWEEP_EARLIER_ROWS_H
#define ROOFSWEEP_EARLIER_ROWS_H

#include <stdbool.h>

#include "manifest/plan.h"
#include "results/results.h"

/* Calls visit(context, row, item) for each row of an item of the plan. False without memory. */
bool earlier_rows_each(const struct plan *plan, const struct results *results,
                       void (*visit)(void *context, const struct row *row, size_t item),
                       void *context);

/* Items of the plan that these results lack, on any device; all of them without memory. */
size_t earlier_rows_missing(const struct plan *plan, const struct results *results);

#endif
