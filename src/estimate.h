/* How long a plan may take, for --dry-run: judged by the rows that its journal already has, or assumed. */
#ifndef ROOFSWEEP_ESTIMATE_H
#define ROOFSWEEP_ESTIMATE_H

#include <stdio.h>

#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "results/results.h"

struct estimate_total {
    size_t left;    /* configurations without a row */
    size_t judged;  /* of them, those like others that were measured */
    double seconds; /* of those, on one device */
    double at_most; /* s, of the others, on the slow device of forecast.h */
};

/* earlier: what the journal holds; NULL: nothing. STATUS_SYSTEM without memory. */
enum status estimate_make(const struct manifest *manifest, const struct plan *plan,
                          const struct results *earlier, struct estimate_total *total,
                          struct error *error);

/* One line; nothing where nothing is left. */
void estimate_print(const struct estimate_total *total, FILE *stream);

#endif
