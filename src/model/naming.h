/* Short names of configurations: their label, and the parameters in which those of one label and
 * workload differ: "batch precision=fp16". Of several labels the first one, and how many more there
 * are: "batch+1".
 *
 * All configurations that stand in one table are added first; then each can be named. */
#pragma once

#include <stdbool.h>

#include "model/workload.h"

struct naming;

struct naming *naming_create(void);         /* NULL without memory */
void naming_destroy(struct naming *naming); /* takes NULL */

/* label: labels, separated by a space. A configuration without a workload is passed over. False: no
 * memory. */
bool naming_add(struct naming *naming, const char *label, const struct config *config);

/* False, and `name` unchanged: nothing of its label and workload was added. */
bool naming_format(const struct naming *naming, const char *label, const struct config *config,
                   char name[WORKLOAD_TEXT]);
