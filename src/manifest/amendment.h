/* Changes a manifest by --set and --only. The amended text is parsed, shared among the ranks, and
 * kept in the file.
 *
 * Lines of sections that --only leaves out become comments, so that other lines keep their numbers.
 * --set writes its key below the section's name, and makes a comment of the line that it
 * replaces. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "manifest/manifest.h"

enum { AMENDMENTS_MAX = 32 };

/* Strings stay the caller's. */
struct amendment {
    /* "KEY=VALUE" or "SECTION.KEY=VALUE", where SECTION is sweep, measure, peaks or a label.
     * Sections of one label get the key if their workload may have it.
     * Without SECTION the key goes to each workload section that may have it, and to [sweep],
     * [measure] or [peaks] if the key is one of its settings. If the manifest lacks that section
     * and no other section has taken the key, the section is added. */
    const char *sets[AMENDMENTS_MAX];
    size_t set_count;
    const char *onlys[AMENDMENTS_MAX]; /* labels of workload sections to keep; none: all */
    size_t only_count;
};

bool amendment_is_empty(const struct amendment *amendment);

/* Replaces *manifest, which has no errors, by the amended one. STATUS_USAGE: no section has the key
 * or label, an entry of `sets` has no '=', or the amended text has errors ("after --set and --only:
 * " is in front); then *manifest is unchanged. */
enum status amendment_read(const struct amendment *amendment, struct manifest **manifest,
                           struct error *error);
