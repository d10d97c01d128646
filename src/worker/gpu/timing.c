#include "worker/gpu/timing.h"

#include <math.h>

#include "base/clock.h"
#include "base/stats.h"
#include "worker/gpu/vendor.h"

/* ---- chunks ---- */

/* The stream's queue holds about a thousand launches, of 2 us and more each. If it were full, the
 * host would wait for the device, which waits for the host to release it. */
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

/* A host may be taken off its processor for tens of milliseconds. What takes it more than the
 * longest limit are more launches than the queue holds. */
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

/* ---- the clock ---- */

double clock_span_rate(const struct clock_span *span)
{
    const double least = 1e-4; /* s: one per cent */
    return span->seconds >= least ? span->cycles / span->seconds : NAN;
}

enum status timing_clock(struct gpu *gpu, double *clock, struct error *error)
{
    struct clock_span span;
    TRY(vendor.span(gpu, &span, error));
    *clock = clock_span_rate(&span);
    return STATUS_OK;
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
    struct calibration calibration;
};

/* What the host saw of one chunk. */
struct seen {
    double enqueue_time; /* s, of one iteration */
    bool ahead;          /* all samples were enqueued before the first one began */
};

static enum status sample_enqueue(const struct series *s, int first, struct error *error)
{
    const struct work_ops *ops = s->work->ops;
    if (ops->reset)
        TRY(ops->reset(s->gpu, s->work, error));
    if (s->cold)
        TRY(vendor.flush(s->gpu, error));
    TRY(vendor.record(s->gpu, first, error));
    for (int i = 0; i < s->iterations; ++i)
        TRY(ops->iterate(s->gpu, s->work, error));
    return vendor.record(s->gpu, first + 1, error);
}

/* The device's clock is read before the first sample and after the last one. If the first sample's
 * begin is still pending then, none of them has begun. */
static enum status samples_enqueue(const struct series *s, int samples, struct seen *seen,
                                   struct error *error)
{
    if (s->record)
        TRY(vendor.stamp(s->gpu, SPAN_BEGIN, error));
    double begin = clock_monotonic();
    for (int i = 0; i < samples; ++i)
        TRY(sample_enqueue(s, 2 * i, error));
    seen->enqueue_time = (clock_monotonic() - begin) / ((double)samples * s->iterations);
    if (s->record)
        TRY(vendor.stamp(s->gpu, SPAN_END, error));
    return vendor.pending(s->gpu, 0, &seen->ahead, error);
}

/* Enqueues a chunk until the device is found held at its end. The hold ends here whatever
 * happens. */
static enum status chunk_try(const struct series *s, int left, struct chunk *chunk,
                             struct seen *seen, struct error *error)
{
    int attempts = s->work->pace.given_up ? 1 : CHUNK_ATTEMPTS;
    for (int i = 0; i < attempts; ++i) {
        if (i > 0)
            TRY(vendor.synchronize(s->gpu, error));
        *chunk = chunk_plan(&s->work->pace, s->iterations, left, i);
        if (chunk->limit > 0.0)
            TRY(vendor.block(s->gpu, chunk->limit, error));
        enum status status = samples_enqueue(s, chunk->samples, seen, error);
        vendor.unblock(s->gpu);
        TRY(status);
        if (seen->ahead || chunk->limit == 0.0)
            return STATUS_OK;
        if (chunk->samples > 1)
            s->work->pace.one_by_one = true;
    }
    return STATUS_OK;
}

/* Of the work, not of the hold before it. Of throttling the driver tells what holds now, by its own
 * clock; whether it is so during the work, the counted clock says. */
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
    TRY(vendor.wait(gpu, 0, error));
    vendor.conditions(gpu, last, &seen);
    return STATUS_OK;
}

static enum status chunk_read(const struct series *s, int samples, double *seconds,
                              double *shortest, struct error *error)
{
    const double overhead = s->calibration.overhead;
    *shortest = INFINITY;
    for (int i = 0; i < samples; ++i) {
        double time;
        TRY(vendor.elapsed(s->gpu, 2 * i, 2 * i + 1, &time, error));
        seconds[i] = time / s->iterations;
        *shortest = fmin(*shortest, fmax(time - overhead, time / 4) / s->iterations);
    }
    return STATUS_OK;
}

/* What is known afterwards: of the host, if it never waited; of the device, if that never did.
 *
 * A sample of more launches than the queue takes is never enqueued while the device is held. If the
 * host was far ahead at its end, by the `lead`, the device did not wait for it: it had the whole
 * queue to run. */
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
    TRY(vendor.synchronize(s->gpu, error));
    double lead = clock_monotonic() - enqueued;
    TRY(chunk_read(s, chunk.samples, seconds, &shortest, error));
    pace_update(s, &chunk, &seen, lead, shortest);
    *taken = chunk.samples;
    if (s->record) {
        struct clock_span span;
        TRY(vendor.span(s->gpu, &span, error));
        s->work->span.cycles += span.cycles;
        s->work->span.seconds += span.seconds;
    }
    return STATUS_OK;
}

static enum status series_take(struct series *s, int samples, double *seconds, struct error *error)
{
    int most = samples < CHUNK_SAMPLES_MAX ? samples : CHUNK_SAMPLES_MAX;
    TRY(vendor.reserve(s->gpu, 2 * most, s->cold, error));
    for (int done = 0, taken; done < samples; done += taken)
        TRY(chunk_take(s, samples - done, seconds + done, &taken, error));
    return STATUS_OK;
}

/* Of one iteration each, until more is known. */
static enum status series_begin(struct gpu *gpu, struct work *work, bool cold, struct series *s,
                                struct error *error)
{
    *s = (struct series){.gpu = gpu, .work = work, .cold = cold, .iterations = 1};
    return vendor.calibrate(gpu, &s->calibration, error);
}

/* A first iteration loads code and shows the host's pace, a second one the device's. */
static enum status pace_learn(struct series *s, struct error *error)
{
    double seconds[2];
    return s->work->pace.iteration_time > 0.0 ? STATUS_OK : series_take(s, 2, seconds, error);
}

/* Iterations that must be prepared one by one are timed one by one. */
static int sample_iterations(const struct series *s, double share)
{
    if (s->cold || s->work->ops->reset)
        return 1;
    return chunk_sample_iterations(&s->work->pace, s->calibration.overhead, share);
}

enum status timing_run(struct gpu *gpu, struct work *work, bool cold, int samples, double *seconds,
                       struct record *record, struct error *error)
{
    const double share = 0.005; /* of the timer in a sample */
    struct series s;
    TRY(series_begin(gpu, work, cold, &s, error));
    if (!record)
        return series_take(&s, samples, seconds, error);
    TRY(pace_learn(&s, error));
    if (work->pace.iterations == 0) {
        work->pace.iterations = sample_iterations(&s, share);
        work->pace.given_up = false; /* samples of a record are tried anew */
    }
    s.iterations = work->pace.iterations;
    s.record = record;
    s.host_paced = false;
    TRY(series_take(&s, samples, seconds, error));
    record->sample_iterations = s.iterations;
    record->timer_overhead = s.calibration.overhead;
    record->host_paced = record->host_paced == 1 || s.host_paced;
    record->sm_clock_counted = clock_span_rate(&work->span);
    record->sm_clock_free = s.calibration.clock_free;
    return STATUS_OK;
}

enum status timing_compare(struct gpu *gpu, struct work *work, bool cold, int samples,
                           double *seconds, struct error *error)
{
    const double share = 0.02; /* of the timer in a sample */
    struct series s;
    TRY(series_begin(gpu, work, cold, &s, error));
    TRY(pace_learn(&s, error));
    s.iterations = sample_iterations(&s, share);
    return series_take(&s, samples, seconds, error);
}

/* ---- a caller's loop ---- */

/* s, of one iteration. */
struct loop_times {
    double host, caller;
};

static enum status loop_run(struct gpu *gpu, struct work *work, int iterations,
                            struct loop_times *times, struct error *error)
{
    if (work->ops->reset)
        TRY(work->ops->reset(gpu, work, error));
    TRY(vendor.synchronize(gpu, error));
    double begin = clock_monotonic();
    for (int i = 0; i < iterations; ++i)
        TRY(work->ops->iterate(gpu, work, error));
    times->host = (clock_monotonic() - begin) / iterations;
    TRY(vendor.synchronize(gpu, error));
    times->caller = (clock_monotonic() - begin) / iterations;
    return STATUS_OK;
}

/* A loop is so long that waiting for its end hardly counts, and so short that its launches fit into
 * the queue; where it is cold, the host's time alone is wanted, in which there is no waiting. Few
 * loops where one takes long; but fewer than six have no interval. */
enum status timing_caller(struct gpu *gpu, struct work *work, bool cold, struct record *record,
                          struct error *error)
{
    enum { LEAST = 6, MOST = 15, ITERATIONS_MOST = 1024 };
    const double length = cold ? 0.25e-3 : 1e-3, enough = 10 * length; /* s */
    const bool once = work->ops->reset;
    double host[MOST], caller[MOST];
    struct loop_times times;
    struct stats stats;
    size_t count = 0;
    int iterations = 1;
    TRY(loop_run(gpu, work, iterations, &times, error));
    while (!once && times.caller * iterations < length && iterations < ITERATIONS_MOST)
        TRY(loop_run(gpu, work, iterations *= 2, &times, error));
    for (double begin = clock_monotonic();
         count < LEAST || (count < MOST && clock_monotonic() - begin < enough); ++count) {
        TRY(loop_run(gpu, work, iterations, &times, error));
        host[count] = times.host;
        caller[count] = times.caller;
    }
    TRY(stats_compute(host, count, &stats, error));
    record->host_time = stats.median;
    record->host_uncertainty = stats_uncertainty(&stats);
    if (cold || once)
        return STATUS_OK;
    TRY(stats_compute(caller, count, &stats, error));
    record->caller_time = stats.median;
    record->caller_uncertainty = stats_uncertainty(&stats);
    return STATUS_OK;
}
