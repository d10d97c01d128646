/* A file's name is durable only when the folder that holds it is. */
#ifndef ROOFSWEEP_FOLDER_H
#define ROOFSWEEP_FOLDER_H

#include "status.h"

/* Makes durable that `path` was created in, or renamed into, its folder. */
enum status folder_sync(const char *path, struct error *error);

#endif
