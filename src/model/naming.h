/* Short names of configurations, such as "batch precision=fp16" or "resnet stem precision=fp16". A
 * short name has a label, a name in the list of that label, and the parameters that differ between
 * configurations with the same label, name and workload. The label is the first one that is not the
 * workload's name. The name is the first one of that label.
 *
 * Add all configurations of a table, then format each. */
#pragma once

#include <stdbool.h>

#include "model/workload.h"

struct naming;

struct naming *naming_create(void);         /* NULL: no memory */
void naming_destroy(struct naming *naming); /* takes NULL */

/* `label` has labels, separated by spaces. `listed` has lines of lists, "LABEL:PLACE NAME xCOUNT",
 * separated by "; "; NULL: none. (Without a name there is only one space between PLACE and xCOUNT.)
 * A configuration without a workload is ignored. False: no memory. */
bool naming_add(struct naming *naming, const char *label, const char *listed,
                const struct config *config);

/* Returns false and leaves `name` unchanged if nothing with this label and workload was added. */
bool naming_format(const struct naming *naming, const char *label, const char *listed,
                   const struct config *config, char name[WORKLOAD_TEXT]);
