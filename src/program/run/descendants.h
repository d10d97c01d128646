/* The processes that this process, or one of them in turn, has started. */
#pragma once

#include <stdbool.h>

/* Makes this process the parent of all orphans among its descendants, so that none gets away. */
void descendants_adopt(void);

/* Kills and reaps descendants until none is left. False: some still hang in the system after
 * `seconds`. */
bool descendants_end(double seconds);
