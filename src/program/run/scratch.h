/* A folder in TMPDIR, for what a program and its worker leave to each other: each run reports in
 * one of its own, and the counters' data go from run to run in another. */
#pragma once

#include <stdio.h>

#include "base/status.h"

/* Locked by flock for as long as its process lives, or until it is removed. */
struct scratch {
    char path[4096];
    int descriptor; /* owned; of the folder, whatever a program does with its path */
};

/* Empty. Removes those that dead processes have left, see scratch_sweep. */
enum status scratch_create(struct scratch *scratch, struct error *error);
/* Removes it with all that is in it. Links are removed, not followed. */
void scratch_remove(struct scratch *scratch);

/* Removes all folders beside the one of this path that are the user's, were made on this host, and
 * that no living process has locked. */
void scratch_sweep(const char *path);

/* `take` is called for each of its files until it fails. Folders and names that begin with a dot
 * are none. STATUS_FAILED also for one that is no regular file: a pipe might never end. */
typedef enum status scratch_take(const char *name, FILE *file, void *argument, struct error *error);
enum status scratch_each(const struct scratch *scratch, scratch_take *take, void *argument,
                         struct error *error);
