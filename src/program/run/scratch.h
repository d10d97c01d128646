/* A folder in TMPDIR that a program and its worker share. Each run has a folder for its reports,
 * and all runs of a row share a folder that carries the counter data from one run to the next. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

/* The folder is locked by flock until it is removed or its process dies. */
struct scratch {
    char path[4096];
    int descriptor; /* owned; stays valid if a program replaces the folder at `path` by another */
};

/* Makes an empty folder, and sweeps the folders of dead processes. */
enum status scratch_create(struct scratch *scratch, struct error *error);
/* Removes the folder with its contents. Links are not followed. False: something stays. */
bool scratch_remove(struct scratch *scratch);

/* Removes all folders beside `path` that belong to the user, were made on this host, and are locked
 * by no living process. */
void scratch_sweep(const char *path);

/* Calls `take` for each file until it fails. Skips folders and names that begin with a dot.
 * STATUS_FAILED: a file is not a regular file; reading a pipe, say, might never end. */
typedef enum status scratch_take(const char *name, FILE *file, void *argument, struct error *error);
enum status scratch_each(const struct scratch *scratch, scratch_take *take, void *argument,
                         struct error *error);
