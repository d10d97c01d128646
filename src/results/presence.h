/* Which variables a result file has. A variable is left out if no row, device or roof of the file can have
 * a value for it: nobody asked for it (energy = no), none of its workloads has it, or none of its devices
 * can measure it. Where a value turns up all the same, as in a journal of another version, the file has the
 * variable. */
#ifndef ROOFSWEEP_PRESENCE_H
#define ROOFSWEEP_PRESENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "results/results.h"

struct presence {
    unsigned met; /* conditions, see presence.c */
    char **found; /* owned: variables that had a value all the same */
    size_t found_count;
    bool no_memory;
};

/* From sessions, devices and the texts of the rows; reads no record. */
struct presence presence_of(const struct results *results);
void presence_clear(struct presence *presence);

/* Names of the variables that not every file has; ends with NULL behind the last. */
const char *presence_conditional(size_t i);

bool presence_has(const struct presence *presence, const char *variable);
/* A value of a variable that it has not: it has it from now on. */
void presence_found(struct presence *presence, const char *variable);

#endif
