/* The plan: every configuration of a manifest, each once, in the order of the sections.
 *
 * A pure function of the manifest. Within a section, rows of the list are in order. Within a row,
 * shape parameters vary in the order of their lines, the first slowest. Within a shape, series vary
 * in that order, too. Configurations that two sections share are one item, at its first place, with
 * both labels. Immutable after plan_create. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "manifest/manifest.h"

struct plan_item {
    struct config config;
    char hash[CONFIG_HASH_TEXT];
    char *label;      /* owned; labels of all sections that have the item, separated by a space */
    char *name;       /* owned; see naming.h */
    char *listed;     /* owned; rows of lists with the item, see naming.h; NULL: none */
    int64_t count;    /* sum of the counts of the rows in `listed` */
    struct cost cost; /* 0: the configuration cannot exist; NaN: the workload has no model */
};

struct plan {
    struct plan_item *items;
    size_t count;
    void *hashes;    /* owned; tree of the items, see tsearch */
    size_t merged;   /* number of configurations that repeat an item */
    size_t excluded; /* number of configurations left out by `exclude` */
};

/* STATUS_USAGE: every configuration is excluded, a section_kind refuses one, or there are more than
 * manifest->sweep.max_configurations (counted before they are expanded). */
enum status plan_create(const struct manifest *manifest, struct plan **plan, struct error *error);
void plan_destroy(struct plan *plan); /* takes NULL */

/* Index of the item with the hash; plan->count: none. */
size_t plan_find(const struct plan *plan, const char *hash);

/* STATUS_USAGE, with the row's name: the program of a label's first row is not on this node. */
enum status plan_find_programs(const struct plan *plan, const char *folder, struct error *error);
/* Prints for each label the values that no line of the manifest sets (section_kind.note). */
void plan_print_notes(const struct plan *plan, FILE *stream);

/* Prints the text of --dry-run: a line for each item with hash, modelled cost ("-": no model),
 * name, configuration, and the reason if it cannot exist; then the counts. */
void plan_print(const struct plan *plan, FILE *stream);
/* Encodes the plan as JSON. Values are in SI units, hashes have all digits, and costs without a
 * model are null. NULL: no memory. */
json_t *plan_encode(const struct plan *plan);
