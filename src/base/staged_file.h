/* A file made in the node's memory, and published whole: under its final name it is complete and
 * durable, or absent. */
#ifndef ROOFSWEEP_STAGED_FILE_H
#define ROOFSWEEP_STAGED_FILE_H

#include "base/status.h"

struct staged_file {
    int fd;
    char path[32];
};

/* A new, empty file in /dev/shm, or failing that in /tmp. */
enum status staged_file_open(struct staged_file *file, struct error *error);

/* Its name is gone and its content stays: if the process is killed, nothing is left over. For use as
 * soon as a library has opened it by name. */
void staged_file_hide(const struct staged_file *file);

/* Writes it to PATH.tmp, synced, and renames that to PATH. */
enum status staged_file_publish(const struct staged_file *file, const char *path,
                                struct error *error);

void staged_file_close(const struct staged_file *file);

#endif
