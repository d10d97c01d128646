/* The plan: every configuration of a manifest, each once, in the manifest's order.
 *
 * A pure function of the manifest. The order is that of the sections. Within a section, the rows of
 * its list are in order; within a row, shape parameters vary in the order of their lines, the first
 * slowest; within each shape the series do likewise. Configurations that two sections share are one
 * item, at its first place, with both labels. Immutable after plan_create. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "manifest/manifest.h"

struct plan_item {
    struct config config;
    char hash[CONFIG_HASH_TEXT];
    char *label;      /* owned; labels of all sections that have the item, separated by a space */
    char *name;       /* owned; name of its row, see naming.h */
    char *listed;     /* owned; rows of lists that ask for the item, see naming.h; NULL: none */
    int64_t count;    /* sum of the counts of these rows */
    struct cost cost; /* 0: the configuration cannot exist; NaN: the workload has no model */
};

struct plan {
    struct plan_item *items;
    size_t count;
    void *hashes;    /* owned; tree of the items, see tsearch */
    size_t merged;   /* number of configurations that repeat an item */
    size_t excluded; /* number of configurations left out by `exclude` */
};

/* STATUS_USAGE: no configuration, or more than manifest->sweep.max_configurations, which are
 * counted before they are expanded. */
enum status plan_create(const struct manifest *manifest, struct plan **plan, struct error *error);
void plan_destroy(struct plan *plan); /* takes NULL */

/* Index of the item with the hash; plan->count: none. */
size_t plan_find(const struct plan *plan, const char *hash);

/* STATUS_USAGE, with the row's name: the program of a label's first row is not on this node. */
enum status plan_find_programs(const struct plan *plan, const char *folder, struct error *error);
/* Prints for each label the values that no line of the manifest sets (section_kind.note). */
void plan_print_notes(const struct plan *plan, FILE *stream);

/* Prints the text of --dry-run: a line for each item with hash, modelled FLOPs, bytes and memory,
 * name, and the reason if it cannot exist; then the counts. "-": a
 * cost without a model. */
void plan_print(const struct plan *plan, FILE *stream);
/* Encodes the plan as JSON. Values are in SI units, hashes have all digits, and costs without a
 * model are null. NULL: no memory. */
json_t *plan_encode(const struct plan *plan);
