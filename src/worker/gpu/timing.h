/* The time that work takes on the device.
 *
 * The host takes longer to launch small kernels than the device to run them. Timed as they come,
 * they would show the host's pace. So the device is held until a chunk of samples is enqueued, and
 * then runs them back to back. */
#pragma once

#include <stdbool.h>

#include "worker/gpu/work.h"

/* As device_ops.time, but for the profiler's ratio. */
enum status timing_run(struct gpu *gpu, struct work *work, bool cold, int samples, double *seconds,
                       struct record *record, struct error *error);

/* Times of one iteration for a comparison of what can be bound: in samples of so many iterations
 * that the timer hardly counts. work->pace must be of what is bound now, or all zero. */
enum status timing_compare(struct gpu *gpu, struct work *work, bool cold, int samples,
                           double *seconds, struct error *error);

/* An ordinary caller's times: iterations in loops, which nothing holds back. Sets host_time and
 * caller_time of *record with their uncertainties; no caller_time where `cold`, nor of what `reset`
 * prepares, which is not part of host_time. */
enum status timing_caller(struct gpu *gpu, struct work *work, bool cold, struct record *record,
                          struct error *error);

/* s-1; NaN if the span was too short for the resolution of the device's clock, 1 us. */
double clock_span_rate(const struct clock_span *span);
/* The rate of the last span that was stamped, which must be over. */
enum status timing_clock(struct gpu *gpu, double *clock, struct error *error);

/* ---- chunks: pure functions ---- */

/* How much is enqueued before the device may begin. */
struct chunk {
    int samples;
    /* s, after which the device is no longer held; 0: it is not held at all, since nothing is known
     * yet: such a chunk shows the host's pace */
    double limit;
};

enum { CHUNK_SAMPLES_MAX = 256, CHUNK_ATTEMPTS = 2 };

/* As many iterations as make the timer's overhead the `share` of a sample, at least 1. That follows
 * from the device alone, so that a busy host changes no sample. Since a launch takes the device
 * about a microsecond, a sample never has more launches than the stream's queue holds. */
int chunk_sample_iterations(const struct pace *pace, double overhead, double share);

/* s, for which the device is held at most, while the host enqueues what it should need `host_time`
 * s for. The host releases the device as soon as it can: a long limit costs nothing, unless the
 * host itself waits for the device. */
double chunk_limit(double host_time);

/* The next chunk of the `left` samples of so many iterations each, left >= 1. After an attempt that
 * failed, attempt 1, the limit is twice as long. Of work that was given up it is about as long as
 * the host should need. */
struct chunk chunk_plan(const struct pace *pace, int iterations, int left, int attempt);
