/* Estimates the time of a configuration, from preparation to record.
 *
 * Rows of a workload fall into classes by modelled duration, a factor of two each. The estimate of
 * a class with measured rows is 1.5 times its longest row. The estimate of another class is the
 * least of three: 1.5 times the next larger measured class, 1.5 times the next smaller one scaled
 * by the model, and an assumed time.
 *
 * The assumed time is that of a slow device: 5 s plus twice all iterations at 10 GFLOP/s and 1
 * GB/s, or at a small share of the measured roofs if that is faster. If a measured row exceeded its
 * assumed time, all assumed times grow by the largest such ratio. Configurations without a modelled
 * cost are one class, without neighbours or assumed time.
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
    bool measured; /* estimated from measured rows; false: assumed */
};

struct estimator;

/* `timeout`: s, of an attempt. NULL: no memory. */
struct estimator *estimator_create(const struct measure_settings *measure, double timeout);
void estimator_destroy(struct estimator *estimator); /* takes NULL */

/* Learns the peaks of a device. The slowest device counts. */
void estimator_set_peaks(struct estimator *estimator, const struct device *device);
/* Adds a measured time, s. */
void estimator_add(struct estimator *estimator, const struct plan_item *item, double seconds);
/* True if a record's time predicts other times: the row was measured at the first attempt. */
bool estimate_is_usable(int64_t status, int64_t attempts);

struct estimate estimator_estimate(const struct estimator *estimator, const struct plan_item *item);

/* Time of one iteration, s, on an imaginary device of 10 TFLOP/s and 1 TB/s, to order
 * configurations. NaN without a model, 0 if the configuration cannot exist. */
double estimate_modelled(struct cost cost);

/* ---- a whole plan, for --dry-run ---- */

struct estimate_total {
    size_t left;    /* configurations without a complete row, see resume.h */
    size_t judged;  /* configurations of `left` with a measured estimate */
    double seconds; /* s; estimate of the judged configurations on one device */
    double at_most; /* s; estimate of the other configurations on the slow device */
    int rounds;     /* `seconds` and `at_most` include all rounds, each as long as the first */
};

/* `earlier`: content of the journal; NULL: empty. STATUS_SYSTEM: no memory. */
enum status estimate_make(const struct manifest *manifest, const struct plan *plan,
                          const struct results *earlier, struct estimate_total *total,
                          struct error *error);

/* Adds the totals as member `estimate`. */
void estimate_encode(const struct estimate_total *total, json_t *object);
/* Prints nothing if no configuration is left. */
void estimate_print(const struct estimate_total *total, FILE *stream);
