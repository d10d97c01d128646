/* The file that an output's path leads to. Its folder stays open, so that nobody can redirect the
 * path by replacing a folder with a link. */
#pragma once

#include <stdbool.h>

#include "base/status.h"

enum { TARGET_FOLDER = 32, TARGET_PATH = TARGET_FOLDER + 256 };

struct target {
    int descriptor;             /* descriptor of the folder; AT_FDCWD: the working folder */
    char folder[TARGET_FOLDER]; /* "." or a path below /proc/self/fd */
    char path[TARGET_PATH];     /* `folder`/name of the file, which need not exist */
};

/* Follows the links of all folders, and with `follow` those of the file. The caller closes the
 * target. STATUS_SYSTEM: a folder cannot be opened, the links form a circle, a name is too long, or
 * a link is not trusted: its owner is neither this user nor root, and others may write to its
 * folder. The text names the folder or link, not `path`. */
enum status target_open(const char *path, bool follow, struct target *target, struct error *error);
void target_close(struct target *target);
