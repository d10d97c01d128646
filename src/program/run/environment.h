/* The environment of a program: what it inherits by name, what the device and the section add. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct environment {
    char **variables; /* owned: "NAME=VALUE"; NULL-terminated */
    size_t count;
    bool complete; /* false: there was no memory */
};

/* Names that every program inherits, NULL-terminated. Nothing else is: not what a launcher of ranks
 * sets, by which a program would take itself for a rank, and no secret. */
extern const char *const environment_inherited[];

/* What is inherited. */
struct environment environment_create(void);
void environment_clear(struct environment *environment);

/* Sets "NAME=VALUE", whatever was there; a bare NAME is inherited, if it is there. */
void environment_set(struct environment *environment, const char *variable);
/* Without a value it is not set. */
void environment_put(struct environment *environment, const char *name, const char *value);
