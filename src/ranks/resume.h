/* Which items of a plan a journal already holds, found by their hashes: the manifest may have
 * changed since. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "manifest/plan.h"
#include "results/results.h"

#define RESUME_NONE SIZE_MAX

/* For each row its item of the plan, or RESUME_NONE; the caller frees it. NULL without memory. */
size_t *resume_items(const struct plan *plan, const struct results *results);

/* Items of the plan that these results lack: on any device, or with `devices` on each of these.
 * Without memory all. */
size_t resume_missing(const struct plan *plan, const struct results *results,
                      const struct device *devices, size_t count);
