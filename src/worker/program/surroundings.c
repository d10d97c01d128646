#include "worker/program/surroundings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* clang-format off */
const char *const surroundings_inherited[] = {
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
static size_t place_of(const struct surroundings *surroundings, const char *variable)
{
    size_t length = name_length(variable), i = 0;
    for (; i < surroundings->count; ++i)
        if (name_length(surroundings->variables[i]) == length &&
            strncmp(surroundings->variables[i], variable, length) == 0)
            break;
    return i;
}

/* There always is room for the NULL behind the last. */
static bool room_make(struct surroundings *surroundings, size_t count)
{
    void *grown = array_grow(surroundings->variables, count, sizeof *surroundings->variables);
    if (grown)
        surroundings->variables = grown;
    surroundings->complete &= grown != NULL;
    return grown != NULL;
}

static void keep(struct surroundings *surroundings, const char *variable)
{
    size_t place = place_of(surroundings, variable);
    char *copy = strdup(variable);
    surroundings->complete &= copy != NULL;
    if (!copy)
        return;
    if (place < surroundings->count) {
        free(surroundings->variables[place]);
    } else {
        if (!room_make(surroundings, surroundings->count + 1)) {
            free(copy);
            return;
        }
        surroundings->variables[++surroundings->count] = NULL;
    }
    surroundings->variables[place] = copy;
}

void surroundings_put(struct surroundings *surroundings, const char *name, const char *value)
{
    char *variable;
    if (!value)
        return;
    if (asprintf(&variable, "%s=%s", name, value) < 0) {
        surroundings->complete = false;
        return;
    }
    keep(surroundings, variable);
    free(variable);
}

void surroundings_set(struct surroundings *surroundings, const char *variable)
{
    if (strchr(variable, '='))
        keep(surroundings, variable);
    else
        surroundings_put(surroundings, variable, getenv(variable));
}

struct surroundings surroundings_create(void)
{
    struct surroundings created = {.complete = true};
    if (room_make(&created, 0))
        created.variables[0] = NULL;
    for (size_t i = 0; created.complete && surroundings_inherited[i]; ++i)
        surroundings_set(&created, surroundings_inherited[i]);
    return created;
}

void surroundings_clear(struct surroundings *surroundings)
{
    for (size_t i = 0; i < surroundings->count; ++i)
        free(surroundings->variables[i]);
    free(surroundings->variables);
    *surroundings = (struct surroundings){.complete = true};
}
