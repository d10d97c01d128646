/* The environment of a program: inherited variables, then those of the device and the section. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct environment {
    char **variables; /* owned: "NAME=VALUE"; NULL-terminated */
    size_t count;
    bool complete; /* false: memory ran out */
};

/* Creates an environment of the variables that every program inherits. A program inherits nothing
 * else: no variable of a launcher, which would make it take itself for a rank, and no secret. */
struct environment environment_create(void);
void environment_clear(struct environment *environment);

/* Sets "NAME=VALUE"; a bare NAME is inherited if it is set here. */
void environment_set(struct environment *environment, const char *variable);
/* Sets a variable; does nothing if `value` is NULL. */
void environment_put(struct environment *environment, const char *name, const char *value);
