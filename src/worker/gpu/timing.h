/* Device times of work.
 *
 * The host may need longer to launch a small kernel than the device to run it. So a blocking kernel
 * keeps the device waiting until the host has enqueued a chunk of samples; the device then runs
 * them back to back. */
#pragma once

#include <stdbool.h>

#include "worker/gpu/work.h"

/* As device_ops.time, but without profiler_ratio. */
enum status timing_run(struct gpu *gpu, struct work *work, bool cold, int samples, double *seconds,
                       struct record *record, struct error *error);

/* Times one iteration to compare algorithms, without the timer's own time. The timer takes `share`
 * of a sample at most, unless the host needs more than 1 ms for such a sample. work->pace belongs
 * to the bound algorithm, or is all zero. */
enum status timing_compare(struct gpu *gpu, struct work *work, bool cold, double share, int samples,
                           double *seconds, struct error *error);

/* Times one iteration in a graph of many, s: the median of some launches. STATUS_OK with NaN: a
 * cold cache, iterations that need a preparation, or a failed capture. */
enum status timing_graph(struct gpu *gpu, struct work *work, bool cold, double *seconds,
                         struct error *error);

/* Times loops of an ordinary caller, without a blocking kernel. Sets host_time, caller_time and
 * their uncertainties in *record. caller_time stays missing if `cold` or with ops.reset; host_time
 * leaves the reset out. */
enum status timing_caller(struct gpu *gpu, struct work *work, bool cold, struct record *record,
                          struct error *error);

/* Times the work that `enqueue` enqueues once, behind a blocking kernel of at most `limit` s. Needs
 * two events. */
enum status timing_blocked(struct gpu *gpu, double limit, gpu_enqueue *enqueue, void *argument,
                           double *seconds, struct error *error);

/* Clock of the multiprocessors over the last span, s-1; NaN if the span was shorter than 0.1 ms,
 * where the device clock's resolution of 1 us makes 1 %. */
enum status timing_clock(struct gpu *gpu, double *clock, struct error *error);

/* Limit of a blocking kernel, s, while the host enqueues work, which should take the host
 * `host_time` s. The host unblocks the device as soon as it can, so a long limit costs nothing
 * unless the host itself waits for the device. */
double timing_block_limit(const struct pace *pace, double host_time);
