/* Measures one configuration: prepares, verifies, warms up, times, traces and measures the energy.
 * batch.h then counts several rows together. Timing, trace and counting are separate runs of the
 * work, because tracing and counting change times. */
#pragma once

#include "base/stats.h"
#include "model/protocol.h"
#include "worker/device_ops.h"
#include "worker/verify.h"

struct measured {
    struct config config;
    struct work *work; /* waits for counting; NULL: the record is complete */
    bool cold, kernels, causes;
    double seconds;       /* s, wall time of the row so far */
    struct record record; /* owned */
};

/* Does all steps except counting, and sets *row. The caller keeps *expected from row to row. The
 * record is complete, and row->work is NULL, if the device does not offer the configuration (the
 * row is skipped), if the row failed (a wrong result, a library error), or if counters are off. The
 * only error is STATUS_DEVICE; then *row owns nothing. */
enum status measure_begin(const struct device_ops *device, struct device_state *state,
                          const struct request *request, struct expected *expected,
                          struct measured *row, struct error *error);

/* Releases the work and completes the record. `status` and *error are those of counting. */
void measure_end(const struct device_ops *device, struct device_state *state, struct measured *row,
                 enum status status, const struct error *error);

/* Stores the first RECORD_SAMPLES_MAX samples (times of one iteration, s) and the statistics of all
 * samples in the record, and sets *stats. STATUS_FAILED: no memory. */
enum status measure_keep_samples(const double *samples, size_t count, struct record *record,
                                 struct stats *stats, struct error *error);

/* Times and context switches of a process, since its begin or between two readings. */
struct occupancy {
    double wall, running; /* s; running: CPU time of all threads */
    double waiting;       /* s in which runnable threads had no core; NaN: unknown */
    int64_t switches;     /* involuntary context switches */
};
/* Reads the values of RUSAGE_SELF or RUSAGE_CHILDREN, except `waiting`. */
struct occupancy measure_occupancy(int who);
/* Stores times as shares of the time of `cores` cores, context switches, and the host's load. */
void measure_keep_occupancy(const struct occupancy *occupied, int64_t cores, struct record *record);

/* The outcome of counting for a device that has no counters. */
extern const struct outcome measure_no_counters;
