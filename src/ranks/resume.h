/* Items of a plan that a journal has, by hash, because the manifest may have changed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "manifest/plan.h"
#include "results/results.h"

#define RESUME_NONE SIZE_MAX

/* Index of each row's item in the plan, or RESUME_NONE; the caller frees the array. NULL: no
 * memory. */
size_t *resume_items(const struct plan *plan, const struct results *results);

/* Number of items without a complete row on any device. With `devices`, counts for each device the
 * items without a complete row on it, and returns the sum. A row is complete if it failed, was
 * skipped, or has `rounds` rounds. If memory is lacking, all items count. */
size_t resume_missing(const struct plan *plan, const struct results *results,
                      const struct device *devices, size_t count, int rounds);
/* Number of rounds that the row lacks. */
size_t resume_rounds(const struct row *row, int rounds);
