/* Symbolic links: what a path names in the end. */
#ifndef ROOFSWEEP_LINK_H
#define ROOFSWEEP_LINK_H

#include "base/status.h"

enum { LINK_TARGET = 4096 }; /* bytes of a path */

/* `path`, or if that is a link the file that it names, through links to links; the file need not
 * exist. STATUS_SYSTEM: the links lead in a circle, or a name is too long. */
enum status link_follow(const char *path, char target[LINK_TARGET], struct error *error);

#endif
