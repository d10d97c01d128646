/* A file made in the node's memory, and published whole: under its final name it is complete and
 * durable, or absent. */
#ifndef ROOFSWEEP_DRAFT_H
#define ROOFSWEEP_DRAFT_H

#include "base/status.h"

struct draft {
    int fd;
    char path[32];
};

/* A new, empty file in /dev/shm, or failing that in /tmp. */
enum status draft_open(struct draft *draft, struct error *error);

/* Its name is gone and its content stays: if the process is killed, nothing is left over. For use as
 * soon as a library has opened it by name. */
void draft_hide(const struct draft *draft);

/* Writes it to PATH.tmp, synced, and renames that to PATH. */
enum status draft_publish(const struct draft *draft, const char *path, struct error *error);

void draft_close(const struct draft *draft);

#endif
