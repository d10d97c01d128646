/* Folders: a file's name is durable only when the folder that holds it is; and the workers lie in
 * the program's own. */
#ifndef ROOFSWEEP_FOLDER_H
#define ROOFSWEEP_FOLDER_H

#include <stddef.h>

#include "base/status.h"

/* Makes durable that `path` was created in, or renamed into, its folder. */
enum status folder_sync(const char *path, struct error *error);

/* Where the running program lies. */
enum status folder_of_program(char *folder, size_t size, struct error *error);

#endif
