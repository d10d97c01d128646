/* Items of a plan that a journal holds, by hash, because the manifest may have changed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "manifest/plan.h"
#include "results/results.h"

#define RESUME_NONE SIZE_MAX

/* Index of each row's item in the plan, or RESUME_NONE; the caller frees the array. NULL: no
 * memory. */
size_t *resume_items(const struct plan *plan, const struct results *results);

/* Number of items without a row on any device; with `devices`, the sum over the devices of items
 * without a row on that device. Without memory it counts all items. */
size_t resume_missing(const struct plan *plan, const struct results *results,
                      const struct device *devices, size_t count);
