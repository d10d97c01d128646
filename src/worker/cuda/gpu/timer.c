#include "worker/cuda/gpu/timer.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "worker/gpu/arena.h"

/* One for each open GPU. All pointers are owned. */
struct timer {
    cudaEvent_t *events; /* [event_count] */
    int event_count;
    struct clock_stamp *stamps; /* device memory: CLOCK_STAMPS of a span's begin, then of its end */
    /* Pinned host memory that blocking kernels poll: the ticket of the last blocking kernel that
     * may end. The value only grows. */
    volatile uint64_t *released;
    uint64_t ticket; /* ticket of the last blocking kernel */
    void *flush;     /* device memory of flush_bytes; NULL until it is reserved */
    size_t flush_bytes;
    struct calibration calibration; /* NaN until worker/gpu/timing.c has measured it */
};

struct timer *timer_open(void)
{
    struct timer *timer = calloc(1, sizeof *timer);
    if (timer)
        timer->calibration = (struct calibration){NAN, NAN};
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

struct calibration *timer_calibration(const struct gpu *gpu)
{
    return &gpu->timer->calibration;
}

/* Unified addressing maps `released` to the same address on the device. The flush reads twice the
 * size of the cache. */
enum status timer_reserve(struct gpu *gpu, int count, bool flushed, struct error *error)
{
    struct timer *timer = gpu->timer;
    void *memory;
    if (count > timer->event_count) {
        cudaEvent_t *events = realloc(timer->events, (size_t)count * sizeof *events);
        if (!events)
            return error_set(error, STATUS_FAILED, "no memory for %d events", count);
        timer->events = events;
    }
    while (timer->event_count < count) {
        TRY(CUDA(cudaEventCreate(&timer->events[timer->event_count])));
        ++timer->event_count;
    }
    if (!timer->released) {
        TRY(CUDA(cudaHostAlloc(&memory, sizeof *timer->released, cudaHostAllocMapped)));
        timer->released = memory;
        *timer->released = timer->ticket;
    }
    if (!timer->stamps) {
        TRY(memory_allocate(2.0 * CLOCK_STAMPS * sizeof *timer->stamps, "the clock", &memory,
                            error));
        timer->stamps = memory;
    }
    if (!flushed || timer->flush)
        return STATUS_OK;
    TRY(memory_allocate(2.0 * (double)gpu->l2_bytes, "flushing the cache", &timer->flush, error));
    timer->flush_bytes = 2 * gpu->l2_bytes;
    return CUDA(cudaMemsetAsync(timer->flush, 0, timer->flush_bytes, gpu->stream));
}

/* ---- events ---- */

cudaEvent_t timer_event(const struct gpu *gpu, int event)
{
    return gpu->timer->events[event];
}

enum status timer_record(struct gpu *gpu, int event, struct error *error)
{
    return CUDA(cudaEventRecord(gpu->timer->events[event], gpu->stream));
}

enum status timer_wait(struct gpu *gpu, int event, struct error *error)
{
    return CUDA(cudaEventSynchronize(gpu->timer->events[event]));
}

enum status timer_pending(struct gpu *gpu, int event, bool *is_pending, struct error *error)
{
    cudaError_t code = cudaEventQuery(gpu->timer->events[event]);
    *is_pending = code == cudaErrorNotReady;
    if (!*is_pending)
        return CUDA(code);
    (void)cudaGetLastError(); /* "not ready" is no error */
    return STATUS_OK;
}

enum status timer_elapsed(struct gpu *gpu, int first, int second, double *seconds,
                          struct error *error)
{
    const cudaEvent_t *events = gpu->timer->events;
    float milliseconds;
    TRY(CUDA(cudaEventElapsedTime(&milliseconds, events[first], events[second])));
    *seconds = 1e-3 * (double)milliseconds;
    return STATUS_OK;
}

/* ---- blocking kernel, flush, clocks ---- */

enum status timer_block(struct gpu *gpu, double limit, struct error *error)
{
    struct timer *timer = gpu->timer;
    ++timer->ticket;
    return CUDA(kernel_block(timer->released, timer->ticket, limit, gpu->stream));
}

void timer_unblock(struct gpu *gpu)
{
    *gpu->timer->released = gpu->timer->ticket;
}

enum status timer_flush(struct gpu *gpu, struct error *error)
{
    TRY(timer_reserve(gpu, 0, true, error));
    return CUDA(kernel_read(gpu->timer->flush, gpu->timer->flush_bytes, gpu->stream));
}

enum status timer_stamp(struct gpu *gpu, enum span_end end, struct error *error)
{
    struct clock_stamp *stamps = gpu->timer->stamps + end * CLOCK_STAMPS;
    int blocks = 2 * gpu->multiprocessors; /* some blocks share a multiprocessor */
    TRY(CUDA(cudaMemsetAsync(stamps, 0, CLOCK_STAMPS * sizeof *stamps, gpu->stream)));
    return CUDA(kernel_clock(stamps, blocks, gpu->stream));
}

enum status timer_span(struct gpu *gpu, struct clock_span *span, struct error *error)
{
    struct clock_stamp stamps[2][CLOCK_STAMPS];
    struct clock_span sum = {0.0, 0.0};
    int count = 0;
    TRY(CUDA(cudaMemcpy(stamps, gpu->timer->stamps, sizeof stamps, cudaMemcpyDeviceToHost)));
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
