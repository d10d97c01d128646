/* A file that is published as a copy: under its final name the copy is complete and durable, or
 * absent. The file itself lies in the folder of its output.
 *
 * The file has a temporary name only while a library opens it by name, and during the rename that
 * replaces another file. The name is random, and the file is created only if the name is free, so
 * it is never another user's file. Signals are blocked while the file has the name, so only SIGKILL
 * leaves it behind; staged_file_sweep then removes it. */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/file.h"
#include "base/status.h"
#include "base/target.h"

struct staged_file {
    int fd;
    struct target target;   /* the output, in the same folder */
    char path[TARGET_PATH]; /* the temporary name */
    bool named;             /* the file has the temporary name now */
    sigset_t signals;       /* signal mask to restore when the name is gone */
};

/* Removes files that killed processes have left for `output`: files with its temporary names that
 * belong to this user and that no process has locked. */
void staged_file_sweep(const char *output);

/* Makes an empty file for `output`. It has no name if the file system supports that (O_TMPFILE),
 * and is locked (flock) while it is open. */
enum status staged_file_open(struct staged_file *file, const char *output, struct error *error);

/* Gives the file its temporary name, unless the file already has one. Blocks signals until
 * staged_file_hide. */
enum status staged_file_show(struct staged_file *file, struct error *error);

/* Removes the temporary name, but not the content. */
void staged_file_hide(struct staged_file *file);

/* Copies the file, syncs the copy and renames it to `path`. If `published` is NULL, the copy
 * replaces an existing file, also one to which links lead. Otherwise an existing file stays: the
 * copy gets the name `path` or the next free spare_name, which is written to `published`. */
enum status staged_file_publish(const struct staged_file *file, const char *path,
                                char published[LINK_TARGET], struct error *error);

/* Tests whether a file can be published: publishes an empty file in the folder of `output`, and
 * removes it. STATUS_SYSTEM: it cannot. The error's text does not name `output`. */
enum status staged_file_try(const char *output, struct error *error);

/* Truncates the file, which frees its blocks even while a library holds it open, and closes it. */
void staged_file_close(struct staged_file *file);
