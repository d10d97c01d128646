/* A file that is made aside and published whole: under its final name it is complete and durable,
 * or absent. It is made in the folder where it shall be.
 *
 * Until then it has a name only as long as a library needs one to open it, and from a link to a
 * rename where a file is replaced. Nobody can guess the name, and nobody else's file of that name
 * is opened. Meanwhile signals that end the process wait: only SIGKILL can leave it there, and
 * staged_file_sweep then takes it away. */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/file.h"
#include "base/status.h"

enum { STAGED_PATH = LINK_TARGET + 32 };

struct staged_file {
    int fd;
    char path[STAGED_PATH]; /* from staged_file_show to staged_file_hide */
    bool named;             /* it has this name now */
    sigset_t signals;       /* blocked before */
};

/* Removes what a killed process has left of files for `output`: those with its names, of this user,
 * that no process has locked. */
void staged_file_sweep(const char *output);

/* A new, empty file for `output`, without a name where the file system has such files. It is locked
 * (flock) as long as it is open. */
enum status staged_file_open(struct staged_file *file, const char *output, struct error *error);

/* Once: it has a name, which a library can open. Signals wait until staged_file_hide. */
enum status staged_file_show(struct staged_file *file, struct error *error);

/* Its name is gone and its content stays. */
void staged_file_hide(struct staged_file *file);

/* Why no more can be written to it, as an errno; 0 if more can. Changes its content. */
int staged_file_obstacle(const struct staged_file *file);

/* Copies it, synced, and renames that to `path`. `published` NULL: a file that is there is
 * replaced, and of a link the file that it names. Otherwise a file that is there stays: this one
 * gets another name (spare_name), and *published is the name that it has. */
enum status staged_file_publish(const struct staged_file *file, const char *path,
                                char published[LINK_TARGET], struct error *error);

/* Gives its room back, even where a library still holds it open. */
void staged_file_close(struct staged_file *file);
