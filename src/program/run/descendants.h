/* Descendants of this process: its children, the children's children, and so on. */
#pragma once

#include <stdbool.h>

/* Makes this process the parent of all orphans among its descendants, so that it can end them. */
void descendants_adopt(void);

/* Kills and reaps descendants until none is left. Returns false if, after `seconds`, descendants
 * still hang in a system call. */
bool descendants_end(double seconds);
