/* Folders. A new file's name survives a crash only once its folder is on disk as well. The program's
 * own folder is where its workers lie. */
#ifndef ROOFSWEEP_FOLDER_H
#define ROOFSWEEP_FOLDER_H

#include <stddef.h>

#include "base/status.h"

/* Brings the folder of `path` to disk, after `path` was created or renamed. */
enum status folder_sync(const char *path, struct error *error);

/* Where the running program lies. */
enum status folder_of_program(char *folder, size_t size, struct error *error);

#endif
