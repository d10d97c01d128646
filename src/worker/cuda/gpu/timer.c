#include "worker/cuda/gpu/timer.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/memory.h"

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

enum status timer_reserve(struct timer *timer, int events, struct error *error)
{
    TRY(events_reserve(timer, events, error));
    return stamps_reserve(timer, error);
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

/* Mean over the multiprocessors that were read at both ends. NaN if the span was too short for the
 * resolution of their clocks, 1 us. */
enum status timer_clock(struct timer *timer, double *clock, struct error *error)
{
    const double least = 1e5; /* ns: one per cent */
    struct clock_stamp stamps[2][CLOCK_STAMPS];
    double sum = 0.0;
    int count = 0;
    TRY(CUDA(cudaMemcpy(stamps, timer->stamps, sizeof stamps, cudaMemcpyDeviceToHost)));
    for (int i = 0; i < CLOCK_STAMPS; ++i) {
        const struct clock_stamp *begin = &stamps[0][i], *end = &stamps[1][i];
        double span = (double)end->nanoseconds - (double)begin->nanoseconds;
        if (begin->nanoseconds == 0 || end->nanoseconds == 0 || span < least)
            continue;
        sum += 1e9 * (double)(end->cycles - begin->cycles) / span;
        ++count;
    }
    *clock = count > 0 ? sum / count : NAN;
    return STATUS_OK;
}

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
        timer->gpu = gpu;
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
