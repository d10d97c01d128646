#include "worker/gpu/timing.h"

#include <math.h>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/cuda/gpu/timer.h"

/* One series of samples; nothing is owned. */
struct series {
    struct gpu *gpu;
    struct work *work;
    bool cold;
    int iterations;        /* of a sample */
    struct record *record; /* NULL: of a warm-up or a candidate */
    bool host_paced;
};

/* What the host saw of one chunk. */
struct seen {
    double enqueue_time; /* s, of one iteration */
    bool ahead;          /* all samples were enqueued before the first one began */
};

static enum status sample_enqueue(const struct series *s, cudaEvent_t pair[2], struct error *error)
{
    const struct work_ops *ops = s->work->ops;
    if (ops->reset)
        TRY(ops->reset(s->gpu, s->work, error));
    if (s->cold)
        TRY(timer_flush(s->gpu->timer, error));
    TRY(CUDA(cudaEventRecord(pair[0], s->gpu->stream)));
    for (int i = 0; i < s->iterations; ++i)
        TRY(ops->iterate(s->gpu, s->work, error));
    return CUDA(cudaEventRecord(pair[1], s->gpu->stream));
}

/* The device's clock is read before the first sample and behind the last one. If the first sample's begin
 * is still pending then, none of them has begun. */
static enum status samples_enqueue(const struct series *s, int samples, struct seen *seen,
                                   struct error *error)
{
    struct timer *timer = s->gpu->timer;
    if (s->record)
        TRY(timer_stamp(timer, TIMER_BEGIN, error));
    double begin = clock_monotonic();
    for (int i = 0; i < samples; ++i)
        TRY(sample_enqueue(s, &timer->events[2 * i], error));
    seen->enqueue_time = (clock_monotonic() - begin) / ((double)samples * s->iterations);
    if (s->record)
        TRY(timer_stamp(timer, TIMER_END, error));
    return timer_is_pending(timer, 0, &seen->ahead, error);
}

/* Behind a hold, which ends here whatever happens. */
static enum status chunk_enqueue(const struct series *s, const struct chunk *chunk,
                                 struct seen *seen, struct error *error)
{
    if (chunk->limit > 0.0)
        TRY(timer_hold(s->gpu->timer, chunk->limit, error));
    enum status status = samples_enqueue(s, chunk->samples, seen, error);
    timer_release(s->gpu->timer);
    return status;
}

/* Enqueues a chunk until the device is found held at its end. */
static enum status chunk_try(const struct series *s, int left, struct chunk *chunk,
                             struct seen *seen, struct error *error)
{
    int attempts = s->work->pace.given_up ? 1 : CHUNK_ATTEMPTS;
    for (int i = 0; i < attempts; ++i) {
        if (i > 0)
            TRY(CUDA(cudaStreamSynchronize(s->gpu->stream)));
        *chunk = chunk_plan(&s->work->pace, s->iterations, left, i);
        TRY(chunk_enqueue(s, chunk, seen, error));
        if (seen->ahead || chunk->limit == 0.0)
            return STATUS_OK;
        if (chunk->samples > 1)
            s->work->pace.one_by_one = true;
    }
    return STATUS_OK;
}

/* Of the work, not of the hold before it. Of throttling NVML tells what holds now, by its own clock;
 * whether it is so during the work, the counted clock says. */
static enum status conditions_record(struct gpu *gpu, int last, struct record *record,
                                     struct error *error)
{
    int64_t throttled;
    const struct conditions seen = {
        .sm_clock = &record->sm_clock,
        .memory_clock = &record->memory_clock,
        .temperature = &record->temperature,
        .throttle_reasons = &record->throttle_reasons,
        .throttled = &throttled,
    };
    throttled = 0;
    TRY(CUDA(cudaEventSynchronize(gpu->timer->events[0])));
    nvml_sample(gpu->nvml, gpu->timer->events[last], &seen);
    return STATUS_OK;
}

static enum status chunk_read(const struct series *s, int samples, double *seconds,
                              double *shortest, struct error *error)
{
    const double overhead = s->gpu->timer->overhead;
    *shortest = INFINITY;
    for (int i = 0; i < samples; ++i) {
        double time;
        TRY(timer_elapsed(s->gpu->timer, 2 * i, 2 * i + 1, &time, error));
        seconds[i] = time / s->iterations;
        *shortest = fmin(*shortest, fmax(time - overhead, time / 4) / s->iterations);
    }
    return STATUS_OK;
}

/* A sample of more launches than the queue takes is never enqueued while the device is held. If the host
 * was far ahead at its end, the device did not wait for it: it had the whole queue to run. */
static bool queue_was_full(const struct chunk *chunk, double sample_time, double lead)
{
    const double least = 0.05;
    return chunk->samples == 1 && lead >= least * sample_time;
}

static enum status clocks_add(const struct series *s, struct error *error)
{
    struct clock_span span;
    TRY(timer_span(s->gpu->timer, &span, error));
    s->work->span.cycles += span.cycles;
    s->work->span.seconds += span.seconds;
    return STATUS_OK;
}

/* What is known afterwards: of the host, if it never waited; of the device, if that never did. */
static void pace_update(struct series *s, const struct chunk *chunk, const struct seen *seen,
                        double lead, double shortest)
{
    struct pace *pace = &s->work->pace;
    bool held = chunk->limit > 0.0;
    if (seen->ahead || !held)
        pace->enqueue_time = seen->enqueue_time;
    if (held)
        pace->iteration_time =
            pace->iteration_time > 0.0 ? fmin(pace->iteration_time, shortest) : shortest;
    if (held && !seen->ahead) {
        pace->given_up = true;
        s->host_paced = s->host_paced || !queue_was_full(chunk, shortest * s->iterations, lead);
    }
}

/* Takes the next chunk of `left` samples. */
static enum status chunk_take(struct series *s, int left, double *seconds, int *taken,
                              struct error *error)
{
    struct chunk chunk;
    struct seen seen;
    double shortest;
    TRY(chunk_try(s, left, &chunk, &seen, error));
    double enqueued = clock_monotonic();
    if (s->record && chunk.samples == left)
        TRY(conditions_record(s->gpu, 2 * chunk.samples - 1, s->record, error));
    TRY(CUDA(cudaStreamSynchronize(s->gpu->stream)));
    double lead = clock_monotonic() - enqueued;
    TRY(chunk_read(s, chunk.samples, seconds, &shortest, error));
    pace_update(s, &chunk, &seen, lead, shortest);
    *taken = chunk.samples;
    return s->record ? clocks_add(s, error) : STATUS_OK;
}

static enum status series_take(struct series *s, int samples, double *seconds, struct error *error)
{
    int most = samples < CHUNK_SAMPLES_MAX ? samples : CHUNK_SAMPLES_MAX;
    TRY(timer_reserve(s->gpu->timer, 2 * most, error));
    if (s->cold)
        TRY(timer_reserve_flush(s->gpu->timer, error));
    for (int done = 0, taken; done < samples; done += taken)
        TRY(chunk_take(s, samples - done, seconds + done, &taken, error));
    return STATUS_OK;
}

/* Samples of one iteration each. */
static enum status singles_take(struct gpu *gpu, struct work *work, bool cold, int samples,
                                double *seconds, struct error *error)
{
    struct series s = {gpu, work, cold, 1, NULL, false};
    TRY(timer_calibrate(gpu->timer, error));
    return series_take(&s, samples, seconds, error);
}

/* Iterations that must be prepared one by one are timed one by one. */
static int sample_iterations(const struct gpu *gpu, const struct work *work, bool cold,
                             double share)
{
    if (cold || work->ops->reset)
        return 1;
    return chunk_sample_iterations(&work->pace, gpu->timer->overhead, share);
}

/* A first iteration loads code and shows the host's pace, a second one the device's. */
static enum status pace_learn(struct gpu *gpu, struct work *work, bool cold, struct error *error)
{
    double seconds[2];
    if (work->pace.iteration_time > 0.0)
        return STATUS_OK;
    return singles_take(gpu, work, cold, 2, seconds, error);
}

static void record_fill(const struct series *s)
{
    struct record *record = s->record;
    const double held_down = 0.98;
    const struct timer *timer = s->gpu->timer;
    record->sample_iterations = s->iterations;
    record->timer_overhead = timer->overhead;
    record->host_paced = record->host_paced == 1 || s->host_paced;
    record->sm_clock_counted = clock_span_rate(&s->work->span);
    record->sm_clock_free = timer->clock_free;
    record->throttled = isnan(record->sm_clock_counted)
                            ? FIELD_MISSING
                            : record->sm_clock_counted < held_down * timer->clock_free;
}

enum status timing_run(struct gpu *gpu, struct work *work, bool cold, int samples, double *seconds,
                       struct record *record, struct error *error)
{
    const double share = 0.005; /* of the timer in a sample */
    if (!record)
        return singles_take(gpu, work, cold, samples, seconds, error);
    TRY(pace_learn(gpu, work, cold, error));
    if (work->pace.iterations == 0) {
        work->pace.iterations = sample_iterations(gpu, work, cold, share);
        work->pace.given_up = false; /* samples of a record are tried anew */
    }
    struct series s = {gpu, work, cold, work->pace.iterations, record, false};
    TRY(series_take(&s, samples, seconds, error));
    record_fill(&s);
    return STATUS_OK;
}

enum status timing_compare(struct gpu *gpu, struct work *work, bool cold, int samples,
                           double *seconds, struct error *error)
{
    const double share = 0.02; /* of the timer in a sample */
    TRY(pace_learn(gpu, work, cold, error));
    struct series s = {gpu, work, cold, sample_iterations(gpu, work, cold, share), NULL, false};
    return series_take(&s, samples, seconds, error);
}
