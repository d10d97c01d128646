/* The steps of one configuration: prepare, verify, warm up, time, measure the energy, trace, count.
 * This file does all steps but counting; batch.h counts several rows together.
 *
 * Timing, trace and counters are separate runs of the same work, because trace and counters change
 * times. */
#pragma once

#include "base/stats.h"
#include "model/protocol.h"
#include "worker/device_ops.h"
#include "worker/verify.h"

struct measured {
    struct config config;
    struct work *work; /* waits for its counts; NULL: the record is complete */
    bool cold, kernels, causes;
    double seconds;       /* s, wall time of the row so far */
    struct record record; /* owned */
};

/* Does all steps but counting, and sets *row. The caller keeps *expected from row to row. `work` is
 * NULL and the record complete if the row needs no counting: it was skipped (the device does not
 * offer the configuration), it failed (a wrong result, a library error), or counters are off. The
 * only error is STATUS_DEVICE; then *row owns nothing. */
enum status measure_begin(const struct device_ops *device, struct device_state *state,
                          const struct request *request, struct expected *expected,
                          struct measured *row, struct error *error);

/* Releases the work and completes the record. `status` and *error come from the counting. */
void measure_end(const struct device_ops *device, struct device_state *state, struct measured *row,
                 enum status status, const struct error *error);

/* Puts samples (s of one iteration each) into the record: the first RECORD_SAMPLES_MAX of them, and
 * the statistics of all, also in *stats. STATUS_FAILED: no memory. */
enum status measure_keep_samples(const double *samples, size_t count, struct record *record,
                                 struct stats *stats, struct error *error);

/* Times and counts of a process since it began, or between two readings. */
struct occupancy {
    double wall, running; /* s; running: CPU time of all threads */
    double waiting;       /* s in which threads were ready, but off the processor; NaN: unknown */
    int64_t switches;     /* involuntary context switches */
};
/* Reads the times and counts of RUSAGE_SELF or RUSAGE_CHILDREN, without `waiting`. */
struct occupancy measure_occupancy(int who);
/* Records the shares of the time of `cores`, the switches, and the host's load. */
void measure_keep_occupancy(const struct occupancy *occupied, int64_t cores, struct record *record);

/* The outcome of counting on a device without counters. */
extern const struct outcome measure_no_counters;
