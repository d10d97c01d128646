/* Short names of configurations: label, the name in the label's list, and the parameters that
 * differ within label, name and workload: "batch precision=fp16", "resnet stem precision=fp16". The
 * first label that is not the workload's name counts, and the first name.
 *
 * Add all configurations of a table, then format each. */
#pragma once

#include <stdbool.h>

#include "model/workload.h"

struct naming;

struct naming *naming_create(void);         /* NULL: no memory */
void naming_destroy(struct naming *naming); /* takes NULL */

/* `label` has labels separated by spaces. `listed` has rows of lists, "LABEL:PLACE NAME xCOUNT",
 * separated by "; "; a row without a name has one space; NULL: none. Ignores a configuration
 * without a workload. False: no memory. */
bool naming_add(struct naming *naming, const char *label, const char *listed,
                const struct config *config);

/* Returns false and leaves `name` unchanged if nothing with this label and workload was added. */
bool naming_format(const struct naming *naming, const char *label, const char *listed,
                   const struct config *config, char name[WORKLOAD_TEXT]);
