/* Several journals as one: of jobs that shared out a list, or measured one device each. */
#ifndef ROOFSWEEP_JOURNALS_H
#define ROOFSWEEP_JOURNALS_H

#include <stddef.h>

#include "base/status.h"

enum { JOURNALS_PATH = 64 };

/* What they hold, one after the other. Later ones replace rows of the same configuration and device in earlier
 * ones. */
struct journals {
    int fd;                   /* of a file without a name */
    char path[JOURNALS_PATH]; /* by which this process can open it, while fd is open */
    size_t replaced;          /* rows */
};

/* An empty one in TMPDIR or /tmp, which nobody else sees; it is gone when it is closed. */
enum status journals_create(struct journals *journals, struct error *error);

/* STATUS_SYSTEM: one cannot be read, or there is no room in TMPDIR or /tmp. STATUS_USAGE: one is there twice, or
 * they were measured with different settings. */
enum status journals_join(const char *const *paths, size_t count, struct journals *journals,
                          struct error *error);
void journals_close(struct journals *journals);

#endif
