/* Estimates the time of a configuration, from preparation to record.
 *
 * Measured: rows of a workload fall into classes by modelled duration, a factor of two each. A
 * measured class takes as long as its longest row. Another class takes no longer than the next
 * larger measured class, and no longer than the next smaller one scaled by the model. The estimate
 * adds 50 %.
 *
 * Assumed, for a class without rows: a slow device needs 5 s, plus twice all iterations at 10
 * GFLOP/s and 1 GB/s. If any row took longer than that, the ratio applies to all. Configurations
 * without a modelled cost take as long as the longest of them.
 *
 * The timeout of an attempt limits every estimate. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "results/results.h"

struct estimate {
    double seconds;
    bool measured; /* from measured rows; false: assumed */
};

struct estimator;

/* `timeout`: s, of an attempt. NULL without memory. */
struct estimator *estimator_create(const struct measure_settings *measure, double timeout);
void estimator_destroy(struct estimator *estimator); /* takes NULL */

/* Adds a measured time, s. */
void estimator_add(struct estimator *estimator, const struct plan_item *item, double seconds);
/* True if the time of such a record predicts others: measured at the first attempt. */
bool estimate_is_usable(int64_t status, int64_t attempts);

struct estimate estimator_estimate(const struct estimator *estimator, const struct plan_item *item);

/* s of one iteration on an imaginary device of 10 TFLOP/s and 1 TB/s, to order configurations. NaN
 * without a model, 0 if the configuration cannot exist. */
double estimate_modelled(struct cost cost);

/* ---- a whole plan, for --dry-run ---- */

struct estimate_total {
    size_t left;    /* configurations without a row */
    size_t judged;  /* configurations with a measured estimate */
    double seconds; /* s of those on one device */
    double at_most; /* s of the others on the slow device */
};

/* `earlier`: content of the journal; NULL: empty. STATUS_SYSTEM without memory. */
enum status estimate_make(const struct manifest *manifest, const struct plan *plan,
                          const struct results *earlier, struct estimate_total *total,
                          struct error *error);

/* Adds the totals as member `estimate`. */
void estimate_encode(const struct estimate_total *total, json_t *object);
/* Prints nothing if no configuration is left. */
void estimate_print(const struct estimate_total *total, FILE *stream);
