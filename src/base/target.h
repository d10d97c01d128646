/* The file to which the path of an output leads. The folder of the file stays open, so that nobody
 * can redirect the path by replacing a folder with a link. */
#pragma once

#include <stdbool.h>

#include "base/status.h"

enum { TARGET_FOLDER = 32, TARGET_PATH = TARGET_FOLDER + 256 };

struct target {
    int descriptor;             /* descriptor of the folder; AT_FDCWD: the working folder */
    char folder[TARGET_FOLDER]; /* "." or a path below /proc/self/fd */
    char path[TARGET_PATH];     /* `folder`/name of the file, which need not exist */
};

/* Follows links in the folders of the path, and if `follow` is true, also a link at its end. The
 * caller closes the target. STATUS_SYSTEM: a folder cannot be opened, the links form a circle, a
 * name is too long, or a link is not trusted: its owner is neither this user nor root, and other
 * users can write to the folder of the link. The error's text names the folder or link, not
 * `path`. */
enum status target_open(const char *path, bool follow, struct target *target, struct error *error);
void target_close(struct target *target);
