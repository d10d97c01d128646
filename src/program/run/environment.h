/* The environment of a program: inherited variables, then those of device and section. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct environment {
    char **variables; /* owned: "NAME=VALUE"; NULL-terminated */
    size_t count;
    bool complete; /* false: memory ran out */
};

/* Creates an environment of the variables that every program inherits. A program inherits nothing
 * else: no secret, and no variable of a launcher, because MPI would take a program with such a
 * variable for a rank of the job. */
struct environment environment_create(void);
void environment_clear(struct environment *environment);

/* Sets "NAME=VALUE". A bare NAME is inherited if it is set in this process. */
void environment_set(struct environment *environment, const char *variable);
/* Sets a variable; does nothing if `value` is NULL. */
void environment_put(struct environment *environment, const char *name, const char *value);
