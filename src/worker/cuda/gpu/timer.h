/* The stream's timer: events, the blocking kernel, the cache flush, and readings of the device's
 * clocks. The functions fill the table of worker/gpu/vendor.h, which says what they do. */
#pragma once

#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/vendor.h"

struct timer *timer_open(void);        /* NULL: no memory */
void timer_close(struct timer *timer); /* takes NULL */
struct calibration *timer_calibration(const struct gpu *gpu);

cudaEvent_t timer_event(const struct gpu *gpu, int event);
enum status timer_reserve(struct gpu *gpu, int events, bool flush, struct error *error);
enum status timer_record(struct gpu *gpu, int event, struct error *error);
enum status timer_wait(struct gpu *gpu, int event, struct error *error);
enum status timer_pending(struct gpu *gpu, int event, bool *pending, struct error *error);
enum status timer_elapsed(struct gpu *gpu, int first, int second, double *seconds,
                          struct error *error);
enum status timer_block(struct gpu *gpu, double limit, struct error *error);
void timer_unblock(struct gpu *gpu);
enum status timer_flush(struct gpu *gpu, struct error *error);
enum status timer_stamp(struct gpu *gpu, enum span_end end, struct error *error);
enum status timer_span(struct gpu *gpu, struct clock_span *span, struct error *error);
