#include "worker/cuda/gpu/timing.h"

#include <math.h>

#include "base/clock.h"
#include "base/stats.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/cuda/gpu/timer.h"

/* NVML's energy counter advances in steps of up to 0.1 s: below this it says little. */
static const double energy_span_least = 1.0; /* s */

static enum status enqueue_iteration(struct gpu *gpu, struct work *work, bool cold,
                                     cudaEvent_t pair[2], double *host_time, struct error *error)
{
    if (work->ops->reset)
        TRY(work->ops->reset(gpu, work, error));
    if (cold)
        TRY(timer_flush(gpu->timer, error));
    TRY(CUDA(cudaEventRecord(pair[0], gpu->stream)));
    double begin = clock_monotonic();
    TRY(work->ops->iterate(gpu, work, error));
    *host_time += clock_monotonic() - begin;
    return CUDA(cudaEventRecord(pair[1], gpu->stream));
}

/* The host takes longer to launch small kernels than the device to run them. Timed as they come, they
 * would show the host's pace. So the device is kept waiting until a chunk of iterations is enqueued,
 * and then runs them back to back.
 *
 * A chunk is what the host enqueues in 1.5 ms. That is few enough launches for the stream's queue,
 * which holds about a thousand. Where the device is slower, later chunks find the queue full and the
 * host has to wait. So the host's pace is taken from the fastest chunk. The device's clock is read at
 * the begin of the first chunk and at the end of the last. */
static enum status enqueue(struct gpu *gpu, struct work *work, bool cold, int iterations,
                           bool stamped, double *host_time, struct error *error)
{
    const double chunk_time = 1.5e-3, margin = 2.0, least = 20e-6;
    double estimate = work->enqueue_time;
    int chunk = estimate > 0.0 ? (int)fmax(1.0, chunk_time / estimate) : iterations;
    for (int first = 0; first < iterations; first += chunk) {
        int last = first + chunk < iterations ? first + chunk : iterations;
        if (estimate > 0.0)
            TRY(CUDA(kernel_delay(least + margin * estimate * (last - first), gpu->stream)));
        if (stamped && first == 0)
            TRY(timer_stamp(gpu->timer, TIMER_BEGIN, error));
        double begin = clock_monotonic(), spent = 0.0;
        for (int i = first; i < last; ++i)
            TRY(enqueue_iteration(gpu, work, cold, &gpu->timer->events[2 * i], &spent, error));
        double each = (clock_monotonic() - begin) / (last - first);
        *host_time = fmin(*host_time, spent / (last - first));
        work->enqueue_time = estimate > 0.0 ? fmin(work->enqueue_time, each) : each;
    }
    return stamped ? timer_stamp(gpu->timer, TIMER_END, error) : STATUS_OK;
}

/* The energy used since the last value was given, so that the caller can add the values up. Missing
 * until the span is long enough for the counter. */
static void energy_record(struct work *work, double energy, struct record *record)
{
    bool enough = clock_monotonic() - work->energy_start_time >= energy_span_least;
    record->energy = enough ? energy - work->energy_given : NAN;
    if (enough)
        work->energy_given = energy;
}

static void conditions_record(struct gpu *gpu, cudaEvent_t last, struct record *record)
{
    const struct conditions seen = {
        .sm_clock = &record->sm_clock,
        .memory_clock = &record->memory_clock,
        .temperature = &record->temperature,
        .throttle_reasons = &record->throttle_reasons,
        .throttled = &record->throttled,
    };
    nvml_sample(gpu->nvml, last, &seen);
}

enum status timing_run(struct gpu *gpu, struct work *work, bool cold, int iterations,
                       double *seconds, struct record *record, struct error *error)
{
    double host_time = INFINITY;
    TRY(timer_reserve(gpu->timer, 2 * iterations, error));
    if (cold)
        TRY(timer_reserve_flush(gpu->timer, error));
    if (record && isnan(work->energy_given)) {
        work->energy_given = nvml_energy(gpu->nvml);
        work->energy_start_time = clock_monotonic();
    }
    TRY(enqueue(gpu, work, cold, iterations, record != NULL, &host_time, error));
    if (record)
        conditions_record(gpu, gpu->timer->events[2 * iterations - 1], record);
    TRY(CUDA(cudaStreamSynchronize(gpu->stream)));
    if (record) {
        record->host_time = host_time;
        TRY(timer_clock(gpu->timer, &record->sm_clock_counted, error));
        energy_record(work, nvml_energy(gpu->nvml), record);
        double spent = clock_monotonic() - work->energy_start_time;
        record->power = nvml_power(gpu->nvml, clock_epoch() - spent);
    }
    for (int i = 0; i < iterations; ++i)
        TRY(timer_elapsed(gpu->timer, 2 * i, 2 * i + 1, &seconds[i], error));
    return STATUS_OK;
}

/* A candidate whose warm-up takes far longer than the best time so far cannot win. The warm-up is then
 * taken as its time, so that a slow candidate costs little. */
static enum status candidate_time(struct gpu *gpu, struct work *work, double best_time,
                                  double *time, struct error *error)
{
    const double hopeless_factor = 2.0, hopeless_least = 1e-4; /* s */
    enum { WARMUP = 2, ITERATIONS = 7 };
    double seconds[ITERATIONS];
    struct stats stats;
    TRY(timing_run(gpu, work, false, WARMUP, seconds, NULL, error));
    double warm = fmin(seconds[0], seconds[1]);
    if (warm > hopeless_factor * best_time + hopeless_least) {
        *time = warm;
        return STATUS_OK;
    }
    TRY(timing_run(gpu, work, false, ITERATIONS, seconds, NULL, error));
    TRY(stats_compute(seconds, ITERATIONS, &stats, error));
    *time = stats.median;
    return STATUS_OK;
}

enum status work_choose(struct gpu *gpu, struct work *work, int candidates,
                        enum status (*bind)(struct gpu *gpu, struct work *work, int candidate,
                                            struct error *error),
                        int *fastest, struct error *error)
{
    int best = -1;
    double best_time = INFINITY;
    enum status refusal = STATUS_OK;
    struct error reason, attempt;
    for (int i = 0; i < candidates; ++i) {
        double time;
        enum status status = bind(gpu, work, i, &attempt);
        if (status == STATUS_OK)
            status = candidate_time(gpu, work, best_time, &time, &attempt);
        if (status == STATUS_OK && time < best_time) {
            best = i;
            best_time = time;
        }
        if (status && !refusal) {
            refusal = status;
            reason = attempt;
        }
        if (status == STATUS_DEVICE) {
            *error = attempt;
            return status;
        }
    }
    if (best < 0) {
        *error = reason;
        return refusal;
    }
    TRY(bind(gpu, work, best, error));
    *fastest = best;
    return STATUS_OK;
}
