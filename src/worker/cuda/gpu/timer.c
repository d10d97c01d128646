#include "worker/cuda/gpu/timer.h"

#include <math.h>
#include <stdlib.h>

#include "base/stats.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/gpu/arena.h"

static enum status events_reserve(struct timer *timer, int count, struct error *error)
{
    if (count <= timer->event_count)
        return STATUS_OK;
    cudaEvent_t *events = realloc(timer->events, (size_t)count * sizeof *events);
    if (!events)
        return error_set(error, STATUS_FAILED, "no memory for %d events", count);
    timer->events = events;
    while (timer->event_count < count) {
        TRY(CUDA(cudaEventCreate(&timer->events[timer->event_count])));
        ++timer->event_count;
    }
    return STATUS_OK;
}

static enum status stamps_reserve(struct timer *timer, struct error *error)
{
    void *stamps;
    if (timer->stamps)
        return STATUS_OK;
    TRY(memory_allocate(2.0 * CLOCK_STAMPS * sizeof *timer->stamps, "the clock", &stamps, error));
    timer->stamps = stamps;
    return STATUS_OK;
}

/* Which is mapped at the same address on the device: all addresses are unified. */
static enum status released_reserve(struct timer *timer, struct error *error)
{
    void *released;
    if (timer->released)
        return STATUS_OK;
    TRY(CUDA(cudaHostAlloc(&released, sizeof *timer->released, cudaHostAllocMapped)));
    timer->released = released;
    *timer->released = timer->ticket;
    return STATUS_OK;
}

enum status timer_reserve(struct timer *timer, int events, struct error *error)
{
    TRY(events_reserve(timer, events, error));
    TRY(released_reserve(timer, error));
    return stamps_reserve(timer, error);
}

enum status timer_hold(struct timer *timer, double limit, struct error *error)
{
    ++timer->ticket;
    return CUDA(kernel_hold(timer->released, timer->ticket, limit, timer->gpu->stream));
}

void timer_release(struct timer *timer)
{
    *timer->released = timer->ticket;
}

enum status timer_stamp(struct timer *timer, enum timer_end which, struct error *error)
{
    struct clock_stamp *stamps = timer->stamps + which * CLOCK_STAMPS;
    size_t bytes = CLOCK_STAMPS * sizeof *stamps;
    int blocks =
        2 * timer->gpu->multiprocessors; /* two for each: some blocks share a multiprocessor */
    TRY(CUDA(cudaMemsetAsync(stamps, 0, bytes, timer->gpu->stream)));
    return CUDA(kernel_clock(stamps, blocks, timer->gpu->stream));
}

enum status timer_span(struct timer *timer, struct clock_span *span, struct error *error)
{
    struct clock_stamp stamps[2][CLOCK_STAMPS];
    struct clock_span sum = {0.0, 0.0};
    int count = 0;
    TRY(CUDA(cudaMemcpy(stamps, timer->stamps, sizeof stamps, cudaMemcpyDeviceToHost)));
    for (int i = 0; i < CLOCK_STAMPS; ++i) {
        const struct clock_stamp *begin = &stamps[0][i], *end = &stamps[1][i];
        if (begin->nanoseconds == 0 || end->nanoseconds <= begin->nanoseconds)
            continue;
        sum.cycles += (double)(end->cycles - begin->cycles);
        sum.seconds += 1e-9 * (double)(end->nanoseconds - begin->nanoseconds);
        ++count;
    }
    *span = count > 0 ? (struct clock_span){sum.cycles / count, sum.seconds / count} : sum;
    return STATUS_OK;
}

double clock_span_rate(const struct clock_span *span)
{
    const double least = 1e-4; /* s: one per cent */
    return span->seconds >= least ? span->cycles / span->seconds : NAN;
}

enum status timer_clock(struct timer *timer, double *clock, struct error *error)
{
    struct clock_span span;
    TRY(timer_span(timer, &span, error));
    *clock = clock_span_rate(&span);
    return STATUS_OK;
}

enum status timer_is_pending(const struct timer *timer, int event, bool *pending,
                             struct error *error)
{
    cudaError_t code = cudaEventQuery(timer->events[event]);
    *pending = code == cudaErrorNotReady;
    if (!*pending)
        return CUDA(code);
    (void)cudaGetLastError(); /* "not ready" is an answer */
    return STATUS_OK;
}

/* ---- calibration ---- */

enum { PAIRS = 25 };

static enum status pairs_enqueue(struct timer *timer, int pairs, int kernels, struct error *error)
{
    for (int i = 0; i < pairs; ++i) {
        TRY(CUDA(cudaEventRecord(timer->events[2 * i], timer->gpu->stream)));
        for (int j = 0; j < kernels; ++j)
            TRY(CUDA(kernel_empty(timer->gpu->stream)));
        TRY(CUDA(cudaEventRecord(timer->events[2 * i + 1], timer->gpu->stream)));
    }
    return STATUS_OK;
}

/* The median time of pairs of events around so many empty kernels, enqueued before the first begins. */
static enum status pairs_measure(struct timer *timer, int pairs, int kernels, double *median,
                                 struct error *error)
{
    const double limit = 0.5; /* s, much more than so many launches take the host */
    double seconds[PAIRS];
    struct stats stats;
    TRY(timer_hold(timer, limit, error));
    enum status status = pairs_enqueue(timer, pairs, kernels, error);
    timer_release(timer);
    if (status)
        return status;
    TRY(CUDA(cudaStreamSynchronize(timer->gpu->stream)));
    for (int i = 0; i < pairs; ++i)
        TRY(timer_elapsed(timer, 2 * i, 2 * i + 1, &seconds[i], error));
    TRY(stats_compute(seconds, (size_t)pairs, &stats, error));
    *median = stats.median;
    return STATUS_OK;
}

/* What a pair shows with one kernel, beyond what one more kernel adds. A pair around nothing shows less:
 * its second event does not wait for a kernel's end. */
static enum status overhead_measure(struct timer *timer, struct error *error)
{
    enum { FEW_PAIRS = 5, MANY = 100 };
    double one, many;
    TRY(timer_reserve(timer, 2 * PAIRS, error));
    TRY(CUDA(kernel_empty(timer->gpu->stream))); /* loads its code, before the device is held */
    TRY(pairs_measure(timer, PAIRS, 1, &one, error));
    TRY(pairs_measure(timer, FEW_PAIRS, 1 + MANY, &many, error));
    timer->overhead = fmax(one - (many - one) / MANY, 0.0);
    return STATUS_OK;
}

/* The clock over `span` s in which one thread waits: as high as it may be. */
static enum status clock_idle(struct timer *timer, double span, double *clock, struct error *error)
{
    TRY(timer_stamp(timer, TIMER_BEGIN, error));
    TRY(CUDA(kernel_delay(span, timer->gpu->stream)));
    TRY(timer_stamp(timer, TIMER_END, error));
    TRY(CUDA(cudaStreamSynchronize(timer->gpu->stream)));
    return timer_clock(timer, clock, error);
}

/* A device that had nothing to do wakes up first. After a load of the tensor units the clock is low, and rises
 * for up to 0.2 s: it is read until it no longer does. */
static enum status clock_free_measure(struct timer *timer, struct error *error)
{
    enum { STILL = 25, MOST = 150 };
    const double waking = 20e-3, span = 2e-3; /* s */
    const double rise = 1.002;                /* what two spans of an even clock do not differ by */
    double highest = NAN;
    TRY(CUDA(kernel_delay(waking, timer->gpu->stream)));
    for (int i = 0, still = 0; i < MOST && still < STILL; ++i) {
        double clock;
        TRY(clock_idle(timer, span, &clock, error));
        still = clock <= rise * highest ? still + 1 : 0;
        highest = fmax(highest, clock);
    }
    timer->clock_free = highest;
    return STATUS_OK;
}

enum status timer_calibrate(struct timer *timer, struct error *error)
{
    if (!isnan(timer->overhead))
        return STATUS_OK;
    TRY(timer_reserve(timer, 2, error));
    TRY(clock_free_measure(timer, error));
    return overhead_measure(timer, error);
}

/* ---- flush ---- */

enum status timer_reserve_flush(struct timer *timer, struct error *error)
{
    if (timer->flush)
        return STATUS_OK;
    TRY(memory_allocate(2.0 * (double)timer->gpu->l2_bytes, "flushing the cache", &timer->flush,
                        error));
    timer->flush_bytes = 2 * timer->gpu->l2_bytes;
    return CUDA(cudaMemsetAsync(timer->flush, 0, timer->flush_bytes, timer->gpu->stream));
}

enum status timer_flush(struct timer *timer, struct error *error)
{
    TRY(timer_reserve_flush(timer, error));
    return CUDA(kernel_read(timer->flush, timer->flush_bytes, timer->gpu->stream));
}

struct timer *timer_open(const struct gpu *gpu)
{
    struct timer *timer = calloc(1, sizeof *timer);
    if (timer)
        *timer = (struct timer){.gpu = gpu, .overhead = NAN, .clock_free = NAN};
    return timer;
}

void timer_close(struct timer *timer)
{
    if (!timer)
        return;
    for (int i = 0; i < timer->event_count; ++i)
        cudaEventDestroy(timer->events[i]);
    free(timer->events);
    cudaFree(timer->flush);
    cudaFree(timer->stamps);
    if (timer->released)
        cudaFreeHost((void *)timer->released);
    free(timer);
}

enum status timer_elapsed(const struct timer *timer, int first, int second, double *seconds,
                          struct error *error)
{
    float milliseconds;
    TRY(CUDA(cudaEventElapsedTime(&milliseconds, timer->events[first], timer->events[second])));
    *seconds = 1e-3 * (double)milliseconds;
    return STATUS_OK;
}
