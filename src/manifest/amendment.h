/* What the command line changes in a manifest: --set and --only. From text to text, so that the
 * amended manifest is what is parsed, shared among the ranks, and kept in the file.
 *
 * Lines of sections that --only leaves out become comments, so that lines keep their numbers; so do
 * the lines whose values --set replaces. A key that a section lacks is added after the section's
 * name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "manifest/manifest.h"

enum { AMENDMENTS_MAX = 32 };

/* The strings stay the caller's. */
struct amendment {
    /* "KEY=VALUE" or "SECTION.KEY=VALUE". Without a section it goes to each workload section that
     * may have the key, or to the one of [sweep], [measure] and [peaks] that has it. A section is
     * one of these, or a label. */
    const char *sets[AMENDMENTS_MAX];
    size_t set_count;
    const char
        *onlys[AMENDMENTS_MAX]; /* labels of the workload sections that stay; none given: all */
    size_t only_count;
};

bool amendment_is_empty(const struct amendment *amendment);

/* The text of this manifest, which has no errors, with the amendment; the caller frees *amended.
 * STATUS_USAGE: no section is meant, or what is set has no '='. */
enum status amendment_apply(const struct amendment *amendment, const struct manifest *manifest,
                            char **amended, struct error *error);

/* Replaces *manifest by the amended one. "after --set and --only: " is in front of its errors;
 * *manifest is unchanged then. */
enum status amendment_read(const struct amendment *amendment, struct manifest **manifest,
                           struct error *error);
