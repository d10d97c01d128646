/* Device times of work.
 *
 * The host may need longer to launch a small kernel than the device to run it. So a blocking kernel
 * keeps the device waiting until the host has enqueued a chunk of samples; the device then runs
 * them back to back. */
#pragma once

#include <stdbool.h>

#include "worker/gpu/work.h"

/* As device_ops.time, but without profiler_ratio. Without a record a sample is one iteration, less
 * the timer's overhead. */
enum status timing_run(struct gpu *gpu, struct work *work, bool cold, int samples, double *seconds,
                       struct record *record, struct error *error);

/* Times one iteration to compare algorithms, without the timer's overhead. A sample is so long that
 * the overhead is at most `share` of it, unless the host needs more than 1 ms for such a sample.
 * work->pace is that of the bound algorithm, or all zero. */
enum status timing_compare(struct gpu *gpu, struct work *work, bool cold, double share, int samples,
                           double *seconds, struct error *error);

/* Sets *seconds to the time of one iteration in a graph of many iterations. NaN, with STATUS_OK:
 * the cache is cold, iterations need a preparation, or the capture failed. */
enum status timing_graph(struct gpu *gpu, struct work *work, bool cold, double *seconds,
                         struct error *error);

/* Times loops of an ordinary caller, without a blocking kernel. Sets host_time, which leaves
 * ops.reset out, caller_time and caller_uncertainty of *record. The latter two stay missing with a
 * cold cache or with ops.reset. */
enum status timing_caller(struct gpu *gpu, struct work *work, bool cold, struct record *record,
                          struct error *error);

/* Times what `enqueue` enqueues behind a blocking kernel of at most `limit` s. Needs two events. */
enum status timing_blocked(struct gpu *gpu, double limit, gpu_enqueue *enqueue, void *argument,
                           double *seconds, struct error *error);

/* Sets *clock to the multiprocessors' clock over the last span, s-1. NaN: the span was shorter than
 * 0.1 ms, for which the resolution of 1 us is too coarse. */
enum status timing_clock(struct gpu *gpu, double *clock, struct error *error);

/* Returns the limit, s, of a blocking kernel behind which the host enqueues work in about
 * `host_time` s. The host unblocks the device as soon as it can, so a long limit costs nothing
 * unless the host itself waits for the device. */
double timing_block_limit(const struct pace *pace, double host_time);
