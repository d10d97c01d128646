/* Items of a plan that a journal holds, by hash, because the manifest may have changed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "manifest/plan.h"
#include "results/results.h"

#define RESUME_NONE SIZE_MAX

/* The item of each row, or RESUME_NONE; the caller frees the array. NULL without memory. */
size_t *resume_items(const struct plan *plan, const struct results *results);

/* Number of items without a row: on any device, or with `devices` summed over these. All items
 * without memory. */
size_t resume_missing(const struct plan *plan, const struct results *results,
                      const struct device *devices, size_t count);
