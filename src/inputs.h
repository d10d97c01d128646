/* What rank 0 reads before a sweep: the manifest and its plan, the rows that a journal already holds, and
 * algorithms and roofs that were found before. */
#ifndef ROOFSWEEP_INPUTS_H
#define ROOFSWEEP_INPUTS_H

#include <stdbool.h>

#include "base/log.h"
#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "options.h"
#include "results/choices.h"
#include "results/journal.h"
#include "results/outputs.h"
#include "results/results.h"

/* All zero: nothing is read, as on all ranks but rank 0. Owns what the pointers name, but the manifest and
 * the log. */
struct inputs {
    const struct log *log;
    const struct manifest *manifest;
    struct plan *plan;
    struct outputs outputs;
    struct results *earlier;
    struct journal *journal;        /* NULL: not begun yet */
    struct choices *choices;        /* NULL: of no use to this sweep */
    struct device *earlier_devices; /* [peaks] reuse */
    size_t earlier_device_count;
    bool complete; /* nothing is left to measure */
};

/* Before anything is replaced: with --overwrite what is read may be the output itself. After a failure
 * *inputs and *manifest hold what was read until then. */
enum status inputs_read(const struct options *options, const struct log *log, struct inputs *inputs,
                        struct manifest **manifest, struct error *error);
void inputs_clear(struct inputs *inputs);

#endif
