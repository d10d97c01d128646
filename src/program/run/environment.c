#include "program/run/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* clang-format off */
static const char *const environment_inherited[] = {
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CACHE_HOME",
    "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX",
    "CUDA_HOME", "CUDA_PATH", "CUDA_CACHE_PATH", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_HOME", "HF_HOME", "JAX_COMPILATION_CACHE_DIR",
    "OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
    NULL,
};
/* clang-format on */

/* Owns `variable` from now on; NULL: memory ran out. Keeps room for the NULL at the end. */
static void keep(struct environment *environment, char *variable)
{
    const size_t name = variable ? strcspn(variable, "=") + 1 : 0;
    size_t place = 0;
    if (!variable || !ARRAY_GROW(environment->variables, environment->count + 1)) {
        free(variable);
        environment->complete = false;
        return;
    }
    while (place < environment->count &&
           strncmp(environment->variables[place], variable, name) != 0)
        ++place;
    if (place < environment->count)
        free(environment->variables[place]);
    else
        environment->variables[++environment->count] = NULL;
    environment->variables[place] = variable;
}

void environment_put(struct environment *environment, const char *name, const char *value)
{
    char *variable;
    if (value)
        keep(environment, asprintf(&variable, "%s=%s", name, value) < 0 ? NULL : variable);
}

void environment_set(struct environment *environment, const char *variable)
{
    if (strchr(variable, '='))
        keep(environment, strdup(variable));
    else
        environment_put(environment, variable, getenv(variable));
}

struct environment environment_create(void)
{
    struct environment created = {.variables = calloc(1, sizeof *created.variables)};
    created.complete = created.variables;
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
