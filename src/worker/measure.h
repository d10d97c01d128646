/* What is done for one configuration, in this order: prepare, verify, warm up, time, take the
 * energy, trace, count. All but the last is done here; counters are read for several rows together
 * (batch.h).
 *
 * Timing, trace and counters are separate runs of the same work, because both others change
 * times. */
#pragma once

#include "base/stats.h"
#include "model/protocol.h"
#include "worker/device_ops.h"
#include "worker/verify.h"

/* A row from its first step to its last. */
struct measured {
    struct config config;
    struct work *work; /* it waits for its counts. NULL: the record is complete */
    bool cold, kernels, causes;
    double seconds;       /* that the row has taken so far */
    struct record record; /* owned */
};

/* Does all but count, and sets *row. *expected goes from row to row. The record is complete, and
 * `work` is NULL, if there is nothing to count: the row was skipped (the device does not offer it,
 * with the reason), it has failed (a wrong result, a library error), or nobody asked for counters.
 * Only a lost device is an error: STATUS_DEVICE; then *row owns nothing. */
enum status measure_begin(const struct device_ops *device, struct device_state *state,
                          const struct request *request, struct expected *expected,
                          struct measured *row, struct error *error);

/* The last step: releases the work and completes the record, of which `status` and its error say
 * how counting went. */
void measure_end(const struct device_ops *device, struct device_state *state, struct measured *row,
                 enum status status, const struct error *error);

/* Samples of one iteration each, s, into the record: the first RECORD_SAMPLES_MAX of them, and
 * mean, median and range of all. *stats: what was computed of them. STATUS_FAILED without
 * memory. */
enum status measure_keep_samples(const double *samples, size_t count, struct record *record,
                                 struct stats *stats, struct error *error);

/* The outcome for counters where the device has none. */
extern const struct outcome measure_no_counters;
