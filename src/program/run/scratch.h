/* A folder in TMPDIR that a program and its worker share: each run reports in a folder of its own,
 * and the counters' data go from run to run in another one. */
#pragma once

#include <stdio.h>

#include "base/status.h"

/* Locked by flock while its process lives, or until it is removed. */
struct scratch {
    char path[4096];
    int descriptor; /* owned; descriptor of the folder, valid even if a program replaces path */
};

/* Makes an empty folder, and sweeps the folders of dead processes. */
enum status scratch_create(struct scratch *scratch, struct error *error);
/* Removes the folder with its contents. Links are removed, not followed. */
void scratch_remove(struct scratch *scratch);

/* Removes all folders beside `path` that belong to the user, were made on this host, and are locked
 * by no living process. */
void scratch_sweep(const char *path);

/* Calls `take` for each file until it fails. Skips folders and names that begin with a dot.
 * STATUS_FAILED: a file that is not a regular one, since a pipe might never end. */
typedef enum status scratch_take(const char *name, FILE *file, void *argument, struct error *error);
enum status scratch_each(const struct scratch *scratch, scratch_take *take, void *argument,
                         struct error *error);
