#include "worker/gpu/timing.h"

#include <math.h>

#include "base/clock.h"
#include "base/stats.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/cuda/gpu/timer.h"

/* ---- chunks ---- */

/* The stream's queue holds about a thousand launches, of 2 us and more each. If it were full, the host
 * would wait for the device, which waits for the host to release it. */
static const double host_time_most = 1e-3; /* s, of one chunk */
/* What is discarded at a failure stays small. */
static const double device_time_most = 20e-3; /* s, of one chunk */

static double within(double value, double least, double most)
{
    return fmin(fmax(value, least), most);
}

int chunk_sample_iterations(const struct pace *pace, double overhead, double share)
{
    const double most = 1000.0;
    return (int)within(ceil(overhead / share / pace->iteration_time), 1.0, most);
}

/* A host may be taken off its processor for tens of milliseconds. What takes it more than the longest
 * limit are more launches than the queue holds. */
double chunk_limit(double host_time)
{
    const double margin = 4.0, least = 50e-3, most = 0.5; /* s */
    return within(margin * host_time, least, most);
}

struct chunk chunk_plan(const struct pace *pace, int iterations, int left, int attempt)
{
    const double margin = 1.5, least = 20e-6; /* s, of what was given up */
    if (!(pace->enqueue_time > 0.0))
        return (struct chunk){1, 0.0};
    double most = host_time_most / (pace->enqueue_time * iterations);
    if (pace->iteration_time > 0.0)
        most = fmin(most, device_time_most / (pace->iteration_time * iterations));
    int samples = pace->one_by_one ? 1 : (int)within(most, 1.0, fmin(left, CHUNK_SAMPLES_MAX));
    double host = pace->enqueue_time * iterations * samples, limit = chunk_limit(host);
    if (pace->given_up)
        return (struct chunk){samples, fmin(least + margin * host, limit)};
    return (struct chunk){samples, ldexp(limit, attempt)};
}

/* ---- samples ---- */

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

/* Enqueues a chunk until the device is found held at its end. The hold ends here whatever happens. */
static enum status chunk_try(const struct series *s, int left, struct chunk *chunk,
                             struct seen *seen, struct error *error)
{
    int attempts = s->work->pace.given_up ? 1 : CHUNK_ATTEMPTS;
    for (int i = 0; i < attempts; ++i) {
        if (i > 0)
            TRY(CUDA(cudaStreamSynchronize(s->gpu->stream)));
        *chunk = chunk_plan(&s->work->pace, s->iterations, left, i);
        if (chunk->limit > 0.0)
            TRY(timer_hold(s->gpu->timer, chunk->limit, error));
        enum status status = samples_enqueue(s, chunk->samples, seen, error);
        timer_release(s->gpu->timer);
        if (status)
            return status;
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
    int64_t throttled = 0;
    const struct conditions seen = {
        .sm_clock = &record->sm_clock,
        .memory_clock = &record->memory_clock,
        .temperature = &record->temperature,
        .throttle_reasons = &record->throttle_reasons,
        .throttled = &throttled,
    };
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

/* What is known afterwards: of the host, if it never waited; of the device, if that never did.
 *
 * A sample of more launches than the queue takes is never enqueued while the device is held. If the host
 * was far ahead at its end, by the `lead`, the device did not wait for it: it had the whole queue to run. */
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
        const double least = 0.05; /* of a sample */
        bool queue_was_full = chunk->samples == 1 && lead >= least * shortest * s->iterations;
        pace->given_up = true;
        s->host_paced = s->host_paced || !queue_was_full;
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
    if (s->record) {
        struct clock_span span;
        TRY(timer_span(s->gpu->timer, &span, error));
        s->work->span.cycles += span.cycles;
        s->work->span.seconds += span.seconds;
    }
    return STATUS_OK;
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

enum status timing_run(struct gpu *gpu, struct work *work, bool cold, int samples, double *seconds,
                       struct record *record, struct error *error)
{
    const double share = 0.005;    /* of the timer in a sample */
    const double held_down = 0.98; /* of the free clock */
    const struct timer *timer = gpu->timer;
    if (!record)
        return singles_take(gpu, work, cold, samples, seconds, error);
    TRY(pace_learn(gpu, work, cold, error));
    if (work->pace.iterations == 0) {
        work->pace.iterations = sample_iterations(gpu, work, cold, share);
        work->pace.given_up = false; /* samples of a record are tried anew */
    }
    struct series s = {gpu, work, cold, work->pace.iterations, record, false};
    TRY(series_take(&s, samples, seconds, error));
    record->sample_iterations = s.iterations;
    record->timer_overhead = timer->overhead;
    record->host_paced = record->host_paced == 1 || s.host_paced;
    record->sm_clock_counted = clock_span_rate(&work->span);
    record->sm_clock_free = timer->clock_free;
    record->throttled = isnan(record->sm_clock_counted)
                            ? FIELD_MISSING
                            : record->sm_clock_counted < held_down * timer->clock_free;
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

/* ---- the host's pace ---- */

/* Few where one takes long: it then says enough. */
enum status timing_host_pace(struct gpu *gpu, struct work *work, double *seconds,
                             struct error *error)
{
    enum { LEAST = 5, MOST = 15 };
    const double enough = 4e-3; /* s */
    double values[MOST], begin = clock_monotonic();
    struct stats stats;
    size_t count = 0;
    while (count < LEAST || (count < MOST && clock_monotonic() - begin < enough)) {
        if (work->ops->reset)
            TRY(work->ops->reset(gpu, work, error));
        TRY(CUDA(cudaStreamSynchronize(gpu->stream)));
        double enqueued = clock_monotonic();
        TRY(work->ops->iterate(gpu, work, error));
        values[count++] = clock_monotonic() - enqueued;
    }
    TRY(CUDA(cudaStreamSynchronize(gpu->stream)));
    TRY(stats_compute(values, count, &stats, error));
    *seconds = stats.median;
    return STATUS_OK;
}
