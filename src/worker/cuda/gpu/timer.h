/* The timer: the events and clock readings that times are made of, what holds the device until all is
 * enqueued, and the buffer that flushes the last-level cache. One to each open GPU. */
#ifndef ROOFSWEEP_TIMER_H
#define ROOFSWEEP_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/cuda/gpu/gpu.h"

struct clock_stamp; /* kernels.h */

/* To be read by everyone in the CUDA worker, written by timer.c alone. */
struct timer {
    const struct gpu *gpu;
    cudaEvent_t *events; /* owned, as many as were reserved */
    int event_count;
    struct clock_stamp *stamps; /* owned: CLOCK_STAMPS of a span's begin, as many of its end; on the
                                 * device */
    /* owned: pinned memory of the host's, which the device reads. It only grows: to the ticket of what
     * was released last. */
    volatile uint64_t *released;
    uint64_t ticket; /* of the last hold */
    void *flush;     /* owned: flush_bytes, allocated by the first flush */
    size_t flush_bytes;
    double overhead;   /* s, that a pair of events adds; NaN until timer_calibrate */
    double clock_free; /* s-1, of the multiprocessors with next to nothing to do; likewise */
};

/* NULL without memory. `gpu` must outlive it. */
struct timer *timer_open(const struct gpu *gpu);
void timer_close(struct timer *timer); /* takes NULL */

/* At least so many events, and what timer_stamp and timer_hold need. */
enum status timer_reserve(struct timer *timer, int events, struct error *error);

/* Holds the device: what is enqueued from here on begins when the host calls timer_release, or after
 * `limit` s. As long as an event that was recorded behind it is pending, the device has begun nothing
 * behind that event. The host must not wait for the device before it has released it: nor does it launch
 * a kernel for the first time, whose code may be loaded only when the device has nothing to do. */
enum status timer_hold(struct timer *timer, double limit, struct error *error);
/* Of all holds until now; nothing if there is none. */
void timer_release(struct timer *timer);

/* Enqueues a reading of all multiprocessors' clocks where a span of work begins or ends. */
enum timer_end { TIMER_BEGIN, TIMER_END };
enum status timer_stamp(struct timer *timer, enum timer_end which, struct error *error);
/* The last span, which must be over, by the multiprocessors that were read at both ends: means. All
 * zero if there are none. */
struct clock_span {
    double cycles, seconds;
};
enum status timer_span(struct timer *timer, struct clock_span *span, struct error *error);
/* s-1; NaN if the span was too short for the resolution of the device's clock, 1 us. */
double clock_span_rate(const struct clock_span *span);
/* The rate of the last span. */
enum status timer_clock(struct timer *timer, double *clock, struct error *error);

/* s, from the first of two recorded events to the second, which must be over. */
enum status timer_elapsed(const struct timer *timer, int first, int second, double *seconds,
                          struct error *error);

/* Whether a recorded event has not come yet. */
enum status timer_is_pending(const struct timer *timer, int event, bool *pending,
                             struct error *error);

/* Measures overhead and clock_free, once: later calls do nothing. */
enum status timer_calibrate(struct timer *timer, struct error *error);

/* Allocates what timer_flush needs. */
enum status timer_reserve_flush(struct timer *timer, struct error *error);
/* Enqueues one kernel that reads flush_bytes. That drives everything else out of the last-level cache,
 * and leaves nothing there that is still to be written to device memory. */
enum status timer_flush(struct timer *timer, struct error *error);

#endif
