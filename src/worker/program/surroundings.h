/* The environment of a program: what it inherits by name, what the device and the section add. */
#ifndef ROOFSWEEP_WORKER_PROGRAM_SURROUNDINGS_H
#define ROOFSWEEP_WORKER_PROGRAM_SURROUNDINGS_H

#include <stdbool.h>
#include <stddef.h>

struct surroundings {
    char **variables; /* owned: "NAME=VALUE"; NULL-terminated */
    size_t count;
    bool complete; /* false: there was no memory */
};

/* Names that every program inherits, NULL-terminated. Nothing else is: not what a launcher of ranks
 * sets, by which a program would take itself for a rank, and no secret. */
extern const char *const surroundings_inherited[];

/* What is inherited. */
struct surroundings surroundings_create(void);
void surroundings_clear(struct surroundings *surroundings);

/* Sets "NAME=VALUE", whatever was there; a bare NAME is inherited, if it is there. */
void surroundings_set(struct surroundings *surroundings, const char *variable);
/* Without a value it is not set. */
void surroundings_put(struct surroundings *surroundings, const char *name, const char *value);

#endif
