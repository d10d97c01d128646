/* Whether device times are the same as before: known kernels, timed. */
#include "worker/cuda/gpu/cuda_internal.h"

#include <math.h>

#include "kernels/kernels.h"
#include "base/stats.h"

enum { LAUNCHES = 300, SAMPLES = 9, FMA_BLOCK = 1024 };
static const double enqueueing = 10e-3; /* s, more than so many launches take the host */

static enum status span_end(struct device_state *state, double *seconds, struct error *error)
{
    float milliseconds;
    TRY(CUDA(cudaEventRecord(state->events[1], state->stream)));
    TRY(CUDA(cudaEventSynchronize(state->events[1])));
    TRY(CUDA(cudaEventElapsedTime(&milliseconds, state->events[0], state->events[1])));
    *seconds = 1e-3 * (double)milliseconds;
    return STATUS_OK;
}

/* All are queued before the first begins, as in timing.c. */
static enum status gap_time(struct device_state *state, void *out, double *seconds,
                            struct error *error)
{
    (void)out;
    TRY(CUDA(kernel_delay(enqueueing, state->stream)));
    TRY(CUDA(cudaEventRecord(state->events[0], state->stream)));
    for (int i = 0; i < LAUNCHES; ++i)
        TRY(CUDA(kernel_empty(state->stream)));
    TRY(span_end(state, seconds, error));
    *seconds /= LAUNCHES;
    return STATUS_OK;
}

static enum status kernel_time(struct device_state *state, void *out, double *seconds,
                               struct error *error)
{
    const struct fma_kernel *kernel = fma_kernels;
    const int64_t iterations = 400;
    while (kernel->precision != PRECISION_FP32)
        ++kernel;
    TRY(CUDA(kernel_delay(enqueueing / 100, state->stream)));
    TRY(CUDA(cudaEventRecord(state->events[0], state->stream)));
    TRY(CUDA(kernel->launch(out, iterations, state->multiprocessors, FMA_BLOCK, state->stream)));
    return span_end(state, seconds, error);
}

static enum status medians(struct device_state *state, void *out, double times[DISTURBANCE_TIMES],
                           struct error *error)
{
    static enum status (*const measures[DISTURBANCE_TIMES])(
        struct device_state * state, void *out, double *seconds, struct error *error) = {
        kernel_time, gap_time}; /* the gap depends on the clock most: warm */
    for (int i = 0; i < DISTURBANCE_TIMES; ++i) {
        double seconds[SAMPLES];
        struct stats stats;
        TRY(measures[i](state, out, &seconds[0], error)); /* warm-up */
        for (int j = 0; j < SAMPLES; ++j)
            TRY(measures[i](state, out, &seconds[j], error));
        TRY(stats_compute(seconds, SAMPLES, &stats, error));
        times[i] = stats.median;
    }
    return STATUS_OK;
}

enum status disturbance_times(struct device_state *state, double times[DISTURBANCE_TIMES],
                              struct error *error)
{
    void *out;
    TRY(timing_reserve(state, 2, error));
    TRY(memory_allocate((double)state->multiprocessors * FMA_BLOCK * sizeof(double),
                        "a known kernel", &out, error));
    enum status status = medians(state, out, times, error);
    cudaFree(out);
    return status;
}

static double ratio(const double before[DISTURBANCE_TIMES], const double after[DISTURBANCE_TIMES])
{
    double worst = 0.0;
    for (int i = 0; i < DISTURBANCE_TIMES; ++i)
        if (!(after[i] / before[i] <= worst))
            worst = after[i] / before[i];
    return worst;
}

/* A device too full for the known kernels is no reason to lose what is to be attached. */
enum status disturbance_begin(struct device_state *state, bool *known, struct error *error)
{
    enum status status = disturbance_times(state, state->undisturbed, error);
    *known = status == STATUS_OK;
    return status == STATUS_DEVICE ? status : STATUS_OK;
}

enum status disturbance_judge(struct device_state *state, bool *tolerable, struct error *error)
{
    const double most = 0.02;
    double now[DISTURBANCE_TIMES];
    enum status status = disturbance_times(state, now, error);
    state->profiler_ratio = status == STATUS_OK ? ratio(state->undisturbed, now) : NAN;
    *tolerable = state->profiler_ratio <= 1.0 + most;
    return status == STATUS_DEVICE ? status : STATUS_OK;
}
