#include "worker/cuda/gpu/cuda_internal.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "base/clock.h"
#include "base/stats.h"

/* NVML's energy counter advances in steps of up to 0.1 s: below this it says little. */
static const double energy_span_least = 1.0; /* s */

static enum status events_reserve(struct device_state *state, int count, struct error *error)
{
    if (count <= state->event_count)
        return STATUS_OK;
    cudaEvent_t *events = realloc(state->events, (size_t)count * sizeof *events);
    if (!events)
        return error_set(error, STATUS_FAILED, "no memory for %d events", count);
    state->events = events;
    while (state->event_count < count) {
        TRY(CUDA(cudaEventCreate(&state->events[state->event_count])));
        ++state->event_count;
    }
    return STATUS_OK;
}

static enum status stamps_reserve(struct device_state *state, struct error *error)
{
    void *stamps;
    if (state->stamps)
        return STATUS_OK;
    TRY(memory_allocate(2.0 * CLOCK_STAMPS * sizeof *state->stamps, "the clock", &stamps, error));
    state->stamps = stamps;
    return STATUS_OK;
}

enum status timing_reserve(struct device_state *state, int events, struct error *error)
{
    TRY(events_reserve(state, events, error));
    return stamps_reserve(state, error);
}

enum status timing_stamp(struct device_state *state, enum timing_end which, struct error *error)
{
    struct clock_stamp *stamps = state->stamps + which * CLOCK_STAMPS;
    size_t bytes = CLOCK_STAMPS * sizeof *stamps;
    int blocks =
        2 * state->multiprocessors; /* more than one each: not all come where they should */
    TRY(CUDA(cudaMemsetAsync(stamps, 0, bytes, state->stream)));
    return CUDA(kernel_clock(stamps, blocks, state->stream));
}

/* Mean over all multiprocessors seen at both ends. NaN if the span was too short for the clocks'
 * resolution, 1 us. */
enum status timing_clock(struct device_state *state, double *clock, struct error *error)
{
    const double least = 1e5; /* ns: one per cent */
    struct clock_stamp stamps[2][CLOCK_STAMPS];
    double sum = 0.0;
    int count = 0;
    TRY(CUDA(cudaMemcpy(stamps, state->stamps, sizeof stamps, cudaMemcpyDeviceToHost)));
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

static enum status flush_reserve(struct device_state *state, struct error *error)
{
    if (state->flush)
        return STATUS_OK;
    TRY(memory_allocate(2.0 * (double)state->l2_bytes, "flushing the cache", &state->flush, error));
    state->flush_bytes = 2 * state->l2_bytes;
    return CUDA(cudaMemsetAsync(state->flush, 0, state->flush_bytes, state->stream));
}

enum status timing_flush(struct device_state *state, struct error *error)
{
    TRY(flush_reserve(state, error));
    return CUDA(kernel_read(state->flush, state->flush_bytes, state->stream));
}

void timing_close(struct device_state *state)
{
    for (int i = 0; i < state->event_count; ++i)
        cudaEventDestroy(state->events[i]);
    free(state->events);
    cudaFree(state->flush);
    cudaFree(state->stamps);
}

static enum status enqueue_iteration(struct device_state *state, struct work *work, bool cold,
                                     cudaEvent_t pair[2], double *host_time, struct error *error)
{
    if (work->ops->reset)
        TRY(work->ops->reset(state, work, error));
    if (cold)
        TRY(timing_flush(state, error));
    TRY(CUDA(cudaEventRecord(pair[0], state->stream)));
    double begin = clock_monotonic();
    TRY(work->ops->iterate(state, work, error));
    *host_time += clock_monotonic() - begin;
    return CUDA(cudaEventRecord(pair[1], state->stream));
}

/* The host takes longer to launch small kernels than the device to run them: timed as they come,
 * they would show the host's pace. So the device is kept waiting until a chunk of iterations is
 * enqueued, and then runs them back to back. A chunk is what the host enqueues in 1.5 ms: few
 * enough launches for the stream's queue, which holds about a thousand. Where the device is slower,
 * later chunks find the queue full, and the host waits: its own pace is that of the fastest chunk.
 * The clock is read where all of it begins and ends. */
static enum status enqueue(struct device_state *state, struct work *work, bool cold, int iterations,
                           bool stamped, double *host_time, struct error *error)
{
    const double chunk_time = 1.5e-3, margin = 2.0, least = 20e-6;
    double estimate = work->enqueue_time;
    int chunk = estimate > 0.0 ? (int)fmax(1.0, chunk_time / estimate) : iterations;
    for (int first = 0; first < iterations; first += chunk) {
        int last = first + chunk < iterations ? first + chunk : iterations;
        if (estimate > 0.0)
            TRY(CUDA(kernel_delay(least + margin * estimate * (last - first), state->stream)));
        if (stamped && first == 0)
            TRY(timing_stamp(state, TIMING_BEGIN, error));
        double begin = clock_monotonic(), spent = 0.0;
        for (int i = first; i < last; ++i)
            TRY(enqueue_iteration(state, work, cold, &state->events[2 * i], &spent, error));
        double each = (clock_monotonic() - begin) / (last - first);
        *host_time = fmin(*host_time, spent / (last - first));
        work->enqueue_time = estimate > 0.0 ? fmin(work->enqueue_time, each) : each;
    }
    return stamped ? timing_stamp(state, TIMING_END, error) : STATUS_OK;
}

/* What has been used since the last value given, so that the caller can add up; missing until the
 * span is long enough for the counter. */
static void energy_record(struct work *work, double energy, struct record *record)
{
    bool enough = clock_monotonic() - work->energy_start_time >= energy_span_least;
    record->energy = enough ? energy - work->energy_given : NAN;
    if (enough)
        work->energy_given = energy;
}

static void conditions_record(struct device_state *state, cudaEvent_t last, struct record *record)
{
    const struct conditions seen = {
        .sm_clock = &record->sm_clock,
        .memory_clock = &record->memory_clock,
        .temperature = &record->temperature,
        .throttle_reasons = &record->throttle_reasons,
        .throttled = &record->throttled,
    };
    nvml_sample(state->nvml, last, &seen);
}

enum status timing_run(struct device_state *state, struct work *work, bool cold, int iterations,
                       double *seconds, struct record *record, struct error *error)
{
    double host_time = INFINITY;
    TRY(timing_reserve(state, 2 * iterations, error));
    if (cold)
        TRY(flush_reserve(state, error));
    if (record && isnan(work->energy_given)) {
        work->energy_given = nvml_energy(state->nvml);
        work->energy_start_time = clock_monotonic();
    }
    TRY(enqueue(state, work, cold, iterations, record != NULL, &host_time, error));
    if (record)
        conditions_record(state, state->events[2 * iterations - 1], record);
    TRY(CUDA(cudaStreamSynchronize(state->stream)));
    if (record) {
        record->host_time = host_time;
        record->profiler_ratio = state->profiler_ratio;
        TRY(timing_clock(state, &record->sm_clock_counted, error));
        energy_record(work, nvml_energy(state->nvml), record);
        double spent = clock_monotonic() - work->energy_start_time;
        record->power = nvml_power(state->nvml, clock_epoch() - spent);
    }
    for (int i = 0; i < iterations; ++i) {
        float milliseconds;
        TRY(CUDA(
            cudaEventElapsedTime(&milliseconds, state->events[2 * i], state->events[2 * i + 1])));
        seconds[i] = 1e-3 * (double)milliseconds;
    }
    return STATUS_OK;
}

/* A candidate whose warm-up is far above the best time so far cannot win: that is its time then,
 * and a slow one costs little. */
static enum status candidate_time(struct device_state *state, struct work *work, double best_time,
                                  double *time, struct error *error)
{
    const double hopeless_factor = 2.0, hopeless_least = 1e-4; /* s */
    enum { WARMUP = 2, ITERATIONS = 7 };
    double seconds[ITERATIONS];
    struct stats stats;
    TRY(timing_run(state, work, false, WARMUP, seconds, NULL, error));
    double warm = fmin(seconds[0], seconds[1]);
    if (warm > hopeless_factor * best_time + hopeless_least) {
        *time = warm;
        return STATUS_OK;
    }
    TRY(timing_run(state, work, false, ITERATIONS, seconds, NULL, error));
    TRY(stats_compute(seconds, ITERATIONS, &stats, error));
    *time = stats.median;
    return STATUS_OK;
}

enum status work_choose(struct device_state *state, struct work *work, int candidates,
                        enum status (*bind)(struct device_state *state, struct work *work,
                                            int candidate, struct error *error),
                        int *fastest, struct error *error)
{
    int best = -1;
    double best_time = INFINITY;
    enum status refusal = STATUS_OK;
    struct error reason, attempt;
    for (int i = 0; i < candidates; ++i) {
        double time;
        enum status status = bind(state, work, i, &attempt);
        if (status == STATUS_OK)
            status = candidate_time(state, work, best_time, &time, &attempt);
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
    TRY(bind(state, work, best, error));
    *fastest = best;
    return STATUS_OK;
}
