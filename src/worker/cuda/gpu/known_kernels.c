#include "worker/cuda/gpu/known_kernels.h"

#include "base/stats.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/memory.h"
#include "worker/cuda/gpu/timer.h"

enum { LAUNCHES = 300, SAMPLES = 9, FMA_BLOCK = 1024 };
static const double enqueueing = 10e-3; /* s, more than so many launches take the host */

static enum status span_end(struct gpu *gpu, double *seconds, struct error *error)
{
    TRY(CUDA(cudaEventRecord(gpu->timer->events[1], gpu->stream)));
    TRY(CUDA(cudaEventSynchronize(gpu->timer->events[1])));
    return timer_elapsed(gpu->timer, 0, 1, seconds, error);
}

/* All are queued before the first begins, as in timing.c. */
static enum status gap_time(struct gpu *gpu, void *out, double *seconds, struct error *error)
{
    (void)out;
    TRY(CUDA(kernel_delay(enqueueing, gpu->stream)));
    TRY(CUDA(cudaEventRecord(gpu->timer->events[0], gpu->stream)));
    for (int i = 0; i < LAUNCHES; ++i)
        TRY(CUDA(kernel_empty(gpu->stream)));
    TRY(span_end(gpu, seconds, error));
    *seconds /= LAUNCHES;
    return STATUS_OK;
}

static enum status kernel_time(struct gpu *gpu, void *out, double *seconds, struct error *error)
{
    const struct fma_kernel *kernel = fma_kernels;
    const int64_t iterations = 400;
    while (kernel->precision != PRECISION_FP32)
        ++kernel;
    TRY(CUDA(kernel_delay(enqueueing / 100, gpu->stream)));
    TRY(CUDA(cudaEventRecord(gpu->timer->events[0], gpu->stream)));
    TRY(CUDA(kernel->launch(out, iterations, gpu->multiprocessors, FMA_BLOCK, gpu->stream)));
    return span_end(gpu, seconds, error);
}

static enum status medians(struct gpu *gpu, void *out, double times[KNOWN_KERNELS],
                           struct error *error)
{
    static enum status (*const measures[KNOWN_KERNELS])(struct gpu * gpu, void *out,
                                                        double *seconds, struct error *error) = {
        kernel_time, gap_time}; /* the gap depends on the clock most: warm */
    for (int i = 0; i < KNOWN_KERNELS; ++i) {
        double seconds[SAMPLES];
        struct stats stats;
        TRY(measures[i](gpu, out, &seconds[0], error)); /* warm-up */
        for (int j = 0; j < SAMPLES; ++j)
            TRY(measures[i](gpu, out, &seconds[j], error));
        TRY(stats_compute(seconds, SAMPLES, &stats, error));
        times[i] = stats.median;
    }
    return STATUS_OK;
}

enum status known_kernels_time(struct gpu *gpu, double times[KNOWN_KERNELS], struct error *error)
{
    void *out;
    TRY(timer_reserve(gpu->timer, 2, error));
    TRY(memory_allocate((double)gpu->multiprocessors * FMA_BLOCK * sizeof(double), "a known kernel",
                        &out, error));
    enum status status = medians(gpu, out, times, error);
    cudaFree(out);
    return status;
}
