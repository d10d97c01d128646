/* Where a result file is built before it is published: in a folder for temporary files, in /dev/shm or
 * beside the output, in the first place that takes it. */
#ifndef ROOFSWEEP_DRAFT_H
#define ROOFSWEEP_DRAFT_H

#include "base/staged_file.h"
#include "base/status.h"

struct draft_content {
    void *context;
    double size; /* bytes, rather too many */
    /* Writes it all. The file has a name from staged_file_show to staged_file_hide: for the open call
     * of a library alone. May be called again, for another place. */
    enum status (*fill)(void *context, struct staged_file *file, struct error *error);
    /* What was written shall be written anew, now that fill knows more. */
    bool (*again)(void *context);
};

/* Builds it, and replaces `path` by it. STATUS_SYSTEM names all places that were tried. */
enum status draft_publish(const struct draft_content *content, const char *path,
                          struct error *error);

#endif
