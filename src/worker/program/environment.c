#include "worker/program/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* clang-format off */
const char *const environment_inherited[] = {
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CACHE_HOME",
    "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX",
    "CUDA_HOME", "CUDA_PATH", "CUDA_CACHE_PATH", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_HOME", "HF_HOME", "JAX_COMPILATION_CACHE_DIR",
    "OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
    NULL,
};
/* clang-format on */

static size_t name_length(const char *variable)
{
    return strcspn(variable, "=");
}

/* Where the variable of that name is, or behind the last. */
static size_t place_of(const struct environment *environment, const char *variable)
{
    size_t length = name_length(variable), i = 0;
    for (; i < environment->count; ++i)
        if (name_length(environment->variables[i]) == length &&
            strncmp(environment->variables[i], variable, length) == 0)
            break;
    return i;
}

/* There always is room for the NULL behind the last. */
static bool room_make(struct environment *environment, size_t count)
{
    void *grown = array_grow(environment->variables, count, sizeof *environment->variables);
    if (grown)
        environment->variables = grown;
    environment->complete &= grown != NULL;
    return grown != NULL;
}

static void keep(struct environment *environment, const char *variable)
{
    size_t place = place_of(environment, variable);
    char *copy = strdup(variable);
    environment->complete &= copy != NULL;
    if (!copy)
        return;
    if (place < environment->count) {
        free(environment->variables[place]);
    } else {
        if (!room_make(environment, environment->count + 1)) {
            free(copy);
            return;
        }
        environment->variables[++environment->count] = NULL;
    }
    environment->variables[place] = copy;
}

void environment_put(struct environment *environment, const char *name, const char *value)
{
    char *variable;
    if (!value)
        return;
    if (asprintf(&variable, "%s=%s", name, value) < 0) {
        environment->complete = false;
        return;
    }
    keep(environment, variable);
    free(variable);
}

void environment_set(struct environment *environment, const char *variable)
{
    if (strchr(variable, '='))
        keep(environment, variable);
    else
        environment_put(environment, variable, getenv(variable));
}

struct environment environment_create(void)
{
    struct environment created = {.complete = true};
    if (room_make(&created, 0))
        created.variables[0] = NULL;
    for (size_t i = 0; created.complete && environment_inherited[i]; ++i)
        environment_set(&created, environment_inherited[i]);
    return created;
}

void environment_clear(struct environment *environment)
{
    for (size_t i = 0; i < environment->count; ++i)
        free(environment->variables[i]);
    free(environment->variables);
    *environment = (struct environment){.complete = true};
}
