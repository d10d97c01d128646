/* Changes a manifest by --set and --only. The amended text is parsed, shared among the ranks, and
 * kept in the file.
 *
 * Lines of sections that --only leaves out become comments, so that other lines keep their numbers.
 * --set writes its line below the section's name. The line that it replaces becomes a comment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "manifest/manifest.h"

enum { AMENDMENTS_MAX = 32 };

/* Strings stay the caller's. */
struct amendment {
    /* "KEY=VALUE" or "SECTION.KEY=VALUE", where SECTION is sweep, measure, peaks or a label. With a
     * label, the sections of that label get the key; if it is a parameter of some, only these do.
     * Without SECTION, each workload section with that parameter gets the key, and the one of
     * [sweep], [measure] and [peaks] that has it as a setting. If the manifest lacks the section
     * of the setting, and no other section took the key, the section is added. */
    const char *sets[AMENDMENTS_MAX];
    size_t set_count;
    const char *onlys[AMENDMENTS_MAX]; /* labels of workload sections to keep; none: all */
    size_t only_count;
};

bool amendment_is_empty(const struct amendment *amendment);

/* Replaces *manifest, which has no errors, with the amended one. STATUS_USAGE, *manifest unchanged:
 * no section has the key or label, an entry of `sets` has no '=', or the amended text has errors
 * (which begin with AMENDED, as those of its plan do). */
enum status amendment_read(const struct amendment *amendment, struct manifest **manifest,
                           struct error *error);
