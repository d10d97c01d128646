/* A file that is written without its final name and published at once: under its final name it is
 * complete and durable, or absent. It is in the folder of its output.
 *
 * The file has a temporary name only while a library opens it by name, and during the rename that
 * replaces another file. The name is random, and never opens another user's file. Signals are
 * blocked as long as it has the name. So only SIGKILL leaves a file behind, which
 * staged_file_sweep removes. */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/file.h"
#include "base/status.h"
#include "base/target.h"

struct staged_file {
    int fd;
    struct target target;   /* in the same folder */
    char path[TARGET_PATH]; /* the temporary name */
    bool named;             /* the file has the temporary name now */
    sigset_t signals;       /* the mask to restore when the name is gone */
};

/* Removes files that killed processes have left for `output`: files with its temporary names that
 * belong to this user and that no process has locked. */
void staged_file_sweep(const char *output);

/* Makes an empty file for `output`, without a name if the file system can (O_TMPFILE). The file is
 * locked (flock) while it is open. */
enum status staged_file_open(struct staged_file *file, const char *output, struct error *error);

/* Gives the file its temporary name, once. Blocks signals until staged_file_hide. */
enum status staged_file_show(struct staged_file *file, struct error *error);

/* Removes the temporary name. The content stays. */
void staged_file_hide(struct staged_file *file);

/* Tries to append to the file. Returns the errno that prevents it; 0 if there is room. Changes the
 * content. */
int staged_file_obstacle(const struct staged_file *file);

/* Copies the file, syncs the copy and renames it to `path`. With `published` NULL it replaces an
 * existing file, behind links too. Otherwise an existing file stays: the copy gets `path` or the
 * next free spare_name, and *published is set to that name. */
enum status staged_file_publish(const struct staged_file *file, const char *path,
                                char published[LINK_TARGET], struct error *error);

/* Publishes an empty file for `output` under temporary names and removes it. STATUS_SYSTEM: no file
 * can be published there; the text does not name `output`. */
enum status staged_file_try(const char *output, struct error *error);

/* Truncates the file, which frees its blocks even while a library holds it open, and closes it. */
void staged_file_close(struct staged_file *file);
