/* How long a configuration takes, from preparing to its record, judged by what others took.
 *
 * Measured: configurations of the same workload are put together by their modelled duration, a
 * factor of two in each class. A class that has been measured takes as long as its longest one. One
 * that has not takes no longer than the next class of larger work, and no longer than the next one
 * of smaller work, scaled by the model. Half as much again is added.
 *
 * Assumed, of a class that has not been measured: no longer than on a slow device, which takes 5 s,
 * and for twice all iterations 10 GFLOP/s and 1 GB/s; if one took longer than that, all do by the
 * same factor. Without a modelled cost: as long as the longest such one that was measured.
 *
 * Never more than `timeout`: an attempt is ended then. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "results/results.h"

struct estimate {
    double seconds;
    bool measured; /* from what others took; false: assumed */
};

struct estimator;

/* timeout: s, of one attempt. NULL without memory. */
struct estimator *estimator_create(const struct measure_settings *measure, double timeout);
void estimator_destroy(struct estimator *estimator); /* takes NULL */

/* This configuration took so long, s. */
void estimator_add(struct estimator *estimator, const struct plan_item *item, double seconds);
/* Whether the time of such a record tells how long others like it take: it was measured, at the
 * first attempt. */
bool estimate_is_usable(int64_t status, int64_t attempts);

struct estimate estimator_estimate(const struct estimator *estimator, const struct plan_item *item);

/* s of one iteration on an imagined device of 10 TFLOP/s and 1 TB/s, which only orders
 * configurations. NaN where the cost is not modelled, 0 where a configuration cannot exist. */
double estimate_modelled(struct cost cost);

/* ---- a whole plan, for --dry-run ---- */

struct estimate_total {
    size_t left;    /* configurations without a row */
    size_t judged;  /* of them, those like others that were measured */
    double seconds; /* of those, on one device */
    double at_most; /* s, of the others, on the slow device */
};

/* earlier: what the journal holds; NULL: nothing. STATUS_SYSTEM without memory. */
enum status estimate_make(const struct manifest *manifest, const struct plan *plan,
                          const struct results *earlier, struct estimate_total *total,
                          struct error *error);

/* Its members, as `estimate` of the object. */
void estimate_encode(const struct estimate_total *total, json_t *object);
/* Some lines; nothing where nothing is left. */
void estimate_print(const struct estimate_total *total, FILE *stream);
