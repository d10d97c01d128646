/* The plan: every configuration of a manifest, each once, in the manifest's order.
 *
 * A pure function of the manifest. The order: sections as they stand; within a section its shape
 * parameters as they stand, the first varying slowest, and within each shape the series likewise.
 * Configurations that two sections share are one item, at its first place, with both labels.
 * Immutable after plan_create. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "manifest/manifest.h"

struct plan_item {
    struct config config;
    char hash[CONFIG_HASH_TEXT];
    char *label; /* of all sections that ask for it, separated by a space; owned by the plan */
    struct cost
        cost; /* 0 where the configuration cannot exist, NaN where the workload has no model */
};

struct plan {
    struct plan_item *items;
    size_t count;
    size_t merged;   /* repetitions of an item that is already there */
    size_t excluded; /* by `exclude` */
};

/* STATUS_USAGE if there are more than manifest->sweep.max_configurations (found by counting, before
 * anything is expanded) or none at all. */
enum status plan_create(const struct manifest *manifest, struct plan **plan, struct error *error);
void plan_destroy(struct plan *plan); /* takes NULL */

/* The text of --dry-run: a line for each item with hash, modelled FLOPs, bytes and memory, its name
 * in the final table (naming.h), and the reason where it cannot exist; then the counts. A cost that
 * is not modelled is "-". */
void plan_print(const struct plan *plan, FILE *stream);
/* The same for programs: SI units, all digits of a hash, null for what is not modelled. NULL
 * without memory. */
json_t *plan_encode(const struct plan *plan);
