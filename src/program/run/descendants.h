/* The processes that this one, or one that it started, has started. */
#pragma once

#include <stdbool.h>

/* From now on a process whose parent ends becomes a child of this one: none gets away. */
void descendants_adopt(void);

/* Kills all of them and reaps them, until none is left. False: some hang in the system longer than
 * `seconds`. */
bool descendants_end(double seconds);
