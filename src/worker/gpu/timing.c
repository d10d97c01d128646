/* Device times of work, from events around samples.
 *
 * A series of samples is taken in chunks. The host enqueues each chunk behind a blocking kernel, so
 * that the device never waits for the host within the chunk. The stream's queue must take all
 * launches of a chunk; otherwise the host would wait for a device that waits for the host. If one
 * sample fills the queue, the device starts early, and the host only gets a head start. struct pace
 * is learnt from the first three iterations and refined with each chunk. The number of iterations
 * in a sample follows from the timer's overhead, which is measured once for each open GPU.
 *
 * If the device began a chunk too early, the chunk is discarded and tried again with twice the
 * limit, then sample by sample. If that fails as well, the samples are kept and host_paced is
 * recorded.
 *
 * Cost: three iterations to learn the pace; the discarded chunks, of 20 ms at most; the
 * calibration, 0.1 to 0.4 s for each open GPU. */
#include "worker/gpu/timing.h"

#include <math.h>

#include "base/clock.h"
#include "base/stats.h"
#include "worker/gpu/graph.h"

static double within(double value, double least, double most)
{
    return fmin(fmax(value, least), most);
}

/* ---- calibration ---- */

enum { PAIRS = 25 };

/* *median: time between two events around `kernels` empty kernels. */
static enum status pairs_measure(struct gpu *gpu, int pairs, int kernels, double *median,
                                 struct error *error)
{
    const double limit = 0.5; /* s, far longer than the host needs */
    double seconds[PAIRS];
    struct stats stats;
    TRY(vendor_block(gpu, limit, error));
    enum status status = STATUS_OK;
    for (int i = 0; i < pairs && status == STATUS_OK; ++i) {
        status = vendor_record(gpu, 2 * i, error);
        for (int j = 0; j < kernels && status == STATUS_OK; ++j)
            status = vendor_launch_empty(gpu, error);
        if (status == STATUS_OK)
            status = vendor_record(gpu, 2 * i + 1, error);
    }
    vendor_unblock(gpu);
    TRY(status);
    TRY(vendor_synchronize(gpu, error));
    for (int i = 0; i < pairs; ++i)
        TRY(vendor_elapsed(gpu, 2 * i, 2 * i + 1, &seconds[i], error));
    TRY(stats_compute(seconds, (size_t)pairs, &stats, error));
    *median = stats.median;
    return STATUS_OK;
}

/* The overhead is the time of a pair of events around one kernel, less the time that each further
 * kernel adds. A pair without a kernel shows less: no event waits for the end of a kernel. */
static enum status overhead_measure(struct gpu *gpu, double *overhead, struct error *error)
{
    enum { FEW_PAIRS = 5, MANY = 100 };
    double one, many;
    TRY(vendor_reserve(gpu, 2 * PAIRS, false, error));
    TRY(vendor_launch_empty(gpu, error)); /* loads its code before the device is blocked */
    TRY(pairs_measure(gpu, PAIRS, 1, &one, error));
    TRY(pairs_measure(gpu, FEW_PAIRS, 1 + MANY, &many, error));
    *overhead = fmax(one - (many - one) / MANY, 0.0);
    return STATUS_OK;
}

/* Measures the highest clock that the device reaches: while a single thread waits. The first delay
 * wakes an idle device. A load of the tensor units leaves a low clock, which rises for up to 0.2 s,
 * so the clock is read until it stays the same. */
static enum status clock_free_measure(struct gpu *gpu, double *clock_free, struct error *error)
{
    enum { STILL = 25, MOST = 150 };
    const double waking = 20e-3, length = 2e-3; /* s */
    const double rise = 1.002; /* tolerance: spans of a constant clock differ by less */
    double highest = NAN;
    TRY(vendor_delay(gpu, waking, error));
    for (int i = 0, still = 0; i < MOST && still < STILL; ++i) {
        double clock;
        TRY(vendor_stamp(gpu, SPAN_BEGIN, error));
        TRY(vendor_delay(gpu, length, error));
        TRY(vendor_stamp(gpu, SPAN_END, error));
        TRY(vendor_synchronize(gpu, error));
        TRY(timing_clock(gpu, &clock, error));
        still = clock <= rise * highest ? still + 1 : 0;
        highest = fmax(highest, clock);
    }
    *clock_free = highest;
    return STATUS_OK;
}

static enum status calibrate(struct gpu *gpu, struct calibration *calibration, struct error *error)
{
    struct calibration *known = vendor_calibration(gpu), measured;
    if (isnan(known->overhead)) {
        TRY(vendor_reserve(gpu, 2, false, error));
        TRY(clock_free_measure(gpu, &measured.clock_free, error));
        TRY(overhead_measure(gpu, &measured.overhead, error));
        *known = measured;
    }
    *calibration = *known;
    return STATUS_OK;
}

/* ---- clocks ---- */

static double span_clock(const struct clock_span *span)
{
    const double least = 1e-4; /* s */
    return span->seconds >= least ? span->cycles / span->seconds : NAN;
}

enum status timing_clock(struct gpu *gpu, double *clock, struct error *error)
{
    struct clock_span span;
    TRY(vendor_span(gpu, &span, error));
    *clock = span_clock(&span);
    return STATUS_OK;
}

/* ---- chunks ---- */

/* The first iteration loads code; the second shows the host's pace. */
enum { CHUNK_SAMPLES_MAX = 256, LEARNING = 2 };

/* The queue holds about a thousand launches; a launch takes the host 2 us or more. */
static const double queue_host_time = 1e-3; /* s */
static const int queue_launches = 900;

static bool fills_queue(const struct pace *pace, int iterations)
{
    return pace->launches * iterations > queue_launches;
}

/* Returns the time in which the host fills the queue, s: the limit of the blocking kernel if a
 * sample does not fit into the queue. `host_time`: the host's time for an iteration, s. */
static double head_start(const struct pace *pace, double host_time)
{
    return host_time * queue_launches / pace->launches;
}

/* Samples that are enqueued together. */
struct chunk {
    int samples;
    double limit; /* s, limit of the blocking kernel; 0: no blocking kernel */
};

/* A descheduled host may be away for tens of milliseconds. Launches that take the host longer than
 * the largest limit would not fit into the queue. */
double timing_block_limit(const struct pace *pace, double host_time)
{
    const double margin = 4.0, least = 50e-3, most = 0.5; /* s */
    return fills_queue(pace, 1) ? head_start(pace, host_time)
                                : within(margin * host_time, least, most);
}

/* Plans the next chunk of the `left` samples. The second attempt (1) has twice the limit of the
 * first (0). After pace.given_up the limit is about the time that the host should need. */
static struct chunk chunk_plan(const struct pace *pace, int iterations, int left, int attempt)
{
    const double device_time_most = 20e-3; /* s; discarding longer chunks would cost too much */
    const double given_up_margin = 1.5, given_up_least = 20e-6; /* s */
    if (pace->unblocked < LEARNING)
        return (struct chunk){1, 0.0};
    if (fills_queue(pace, iterations))
        return (struct chunk){1, pace->given_up ? head_start(pace, pace->enqueue_time) : 0.0};
    double most = queue_host_time / (pace->enqueue_time * iterations);
    if (pace->iteration_time > 0.0)
        most = fmin(most, device_time_most / (pace->iteration_time * iterations));
    int samples = pace->one_by_one ? 1 : (int)within(most, 1.0, fmin(left, CHUNK_SAMPLES_MAX));
    double host = pace->enqueue_time * iterations * samples, limit = timing_block_limit(pace, host);
    if (pace->given_up)
        return (struct chunk){samples, fmin(given_up_least + given_up_margin * host, limit)};
    return (struct chunk){samples, ldexp(limit, attempt)};
}

/* ---- samples ---- */

/* One series of samples; nothing is owned. */
struct series {
    struct gpu *gpu;
    struct work *work;
    bool cold;
    int iterations;        /* number of iterations in a sample */
    struct record *record; /* NULL: warm-up, or comparison of algorithms */
    bool host_paced;
    struct calibration calibration;
};

struct enqueued {
    double time; /* s, host's time for one iteration with its preparation */
    double rest; /* s, host's time after the first preparation */
    bool ahead;  /* the host enqueued all samples before the device began the first */
};

/* Reads the device's clocks before the first sample and after the last. Blocks the device after the
 * first preparation, whose launches then leave the queue before the samples come. If the first
 * event is pending at the end, the device has begun no sample. */
static enum status samples_enqueue(const struct series *s, const struct chunk *chunk,
                                   struct enqueued *enqueued, struct error *error)
{
    const struct work_ops *ops = s->work->ops;
    double begin = clock_monotonic(), prepared = begin;
    for (int i = 0; i < chunk->samples; ++i) {
        if (ops->reset)
            TRY(ops->reset(s->gpu, s->work, error));
        if (s->cold)
            TRY(vendor_flush(s->gpu, error));
        if (i == 0)
            prepared = clock_monotonic();
        if (i == 0 && chunk->limit > 0.0)
            TRY(vendor_block(s->gpu, chunk->limit, error));
        if (i == 0 && s->record)
            TRY(vendor_stamp(s->gpu, SPAN_BEGIN, error));
        TRY(vendor_record(s->gpu, 2 * i, error));
        for (int j = 0; j < s->iterations; ++j)
            TRY(ops->iterate(s->gpu, s->work, error));
        TRY(vendor_record(s->gpu, 2 * i + 1, error));
    }
    const double end = clock_monotonic();
    enqueued->time = (end - begin) / ((double)chunk->samples * s->iterations);
    enqueued->rest = end - prepared;
    if (s->record)
        TRY(vendor_stamp(s->gpu, SPAN_END, error));
    return vendor_pending(s->gpu, 0, &enqueued->ahead, error);
}

static void launch_add(const struct graph_kernel *kernel, void *argument)
{
    (void)kernel;
    ++*(int *)argument;
}

/* Counts launches only if an iteration takes the host long. */
static enum status launches_count(const struct series *s, struct error *error)
{
    struct pace *pace = &s->work->pace;
    bool known = false;
    if (pace->launches > 0 || pace->unblocked < LEARNING ||
        pace->enqueue_time < queue_host_time / 2)
        return STATUS_OK;
    TRY(graph_kernels(s->gpu, s->work, launch_add, &pace->launches, &known, error));
    if (!known || pace->launches == 0)
        pace->launches = 1; /* no further count */
    return STATUS_OK;
}

/* Enqueues a chunk. If the device began it before all was enqueued, enqueues it once more, unless a
 * sample fills the queue. Unblocks the device in any case. */
static enum status chunk_try(const struct series *s, int left, struct chunk *chunk,
                             struct enqueued *enqueued, struct error *error)
{
    struct pace *pace = &s->work->pace;
    TRY(launches_count(s, error));
    int attempts = pace->given_up || fills_queue(pace, s->iterations) ? 1 : 2;
    for (int i = 0; i < attempts; ++i) {
        if (i > 0)
            TRY(vendor_synchronize(s->gpu, error));
        *chunk = chunk_plan(pace, s->iterations, left, i);
        enum status status = samples_enqueue(s, chunk, enqueued, error);
        vendor_unblock(s->gpu);
        TRY(status);
        if (enqueued->ahead || chunk->limit == 0.0)
            return STATUS_OK;
        if (chunk->samples > 1)
            pace->one_by_one = true;
    }
    return STATUS_OK;
}

/* Reads the conditions once the blocking kernel is over. Drops `throttled`: the driver's flag lags
 * behind, and the counted clock shows throttling during the work. */
static enum status conditions_record(struct gpu *gpu, int last, struct record *record,
                                     struct error *error)
{
    int64_t throttled = 0;
    const struct conditions conditions = {
        .sm_clock = &record->sm_clock,
        .memory_clock = &record->memory_clock,
        .temperature = &record->temperature,
        .throttle_reasons = &record->throttle_reasons,
        .throttled = &throttled,
    };
    TRY(vendor_wait(gpu, 0, error));
    vendor_conditions(gpu, last, &conditions);
    return STATUS_OK;
}

/* Learns the host's pace if the host never waited, and the device's pace if the device was blocked
 * or a sample fills the queue. In a full queue the device was behind if, when the host had enqueued
 * everything, it still had a twentieth of the sample's `time` to run. */
static void pace_update(struct series *s, const struct chunk *chunk,
                        const struct enqueued *enqueued, double time, double shortest)
{
    const double least = 0.05; /* fraction of the sample's time */
    struct pace *pace = &s->work->pace;
    const bool blocked = chunk->limit > 0.0, full = fills_queue(pace, s->iterations);
    const bool behind =
        enqueued->ahead || (full && chunk->limit + (1.0 - least) * time >= enqueued->rest);
    pace->unblocked += !blocked;
    if (enqueued->ahead || !blocked)
        pace->enqueue_time = enqueued->time;
    if (blocked || full)
        pace->iteration_time =
            pace->iteration_time > 0.0 ? fmin(pace->iteration_time, shortest) : shortest;
    if (!behind && (blocked || full)) {
        pace->given_up = true;
        s->host_paced |= blocked;
    }
}

/* Takes the next chunk of `left` samples. */
static enum status chunk_take(struct series *s, int left, double *seconds, int *taken,
                              struct error *error)
{
    const double overhead = s->calibration.overhead;
    struct chunk chunk;
    struct enqueued enqueued;
    double shortest = INFINITY, time = 0.0;
    TRY(chunk_try(s, left, &chunk, &enqueued, error));
    if (s->record && chunk.samples == left)
        TRY(conditions_record(s->gpu, 2 * chunk.samples - 1, s->record, error));
    TRY(vendor_synchronize(s->gpu, error));
    for (int i = 0; i < chunk.samples; ++i) {
        TRY(vendor_elapsed(s->gpu, 2 * i, 2 * i + 1, &time, error));
        seconds[i] = time / s->iterations;
        shortest = fmin(shortest, fmax(time - overhead, time / 4) / s->iterations);
    }
    pace_update(s, &chunk, &enqueued, time, shortest);
    *taken = chunk.samples;
    if (s->record) {
        struct clock_span span;
        TRY(vendor_span(s->gpu, &span, error));
        s->work->span.cycles += span.cycles;
        s->work->span.seconds += span.seconds;
    }
    return STATUS_OK;
}

static enum status series_take(struct series *s, int samples, double *seconds, struct error *error)
{
    int most = samples < CHUNK_SAMPLES_MAX ? samples : CHUNK_SAMPLES_MAX;
    TRY(vendor_reserve(s->gpu, 2 * most, s->cold, error));
    for (int done = 0, taken; done < samples; done += taken)
        TRY(chunk_take(s, samples - done, seconds + done, &taken, error));
    return STATUS_OK;
}

static enum status series_begin(struct gpu *gpu, struct work *work, bool cold, struct series *s,
                                struct error *error)
{
    *s = (struct series){.gpu = gpu, .work = work, .cold = cold, .iterations = 1};
    return calibrate(gpu, &s->calibration, error);
}

/* Learns the pace, and chooses the iterations of a sample, so that the timer's overhead is `share`
 * of the sample. The iteration after those of LEARNING shows the device's pace. The number of
 * iterations depends on the device alone: a busy host changes no sample. A launch takes the device
 * about a microsecond, so only a sample of one iteration can have more launches than the queue
 * holds. Iterations that need a preparation are timed one by one. */
static enum status sample_size(struct series *s, double share, int *iterations, struct error *error)
{
    const double most = 1000.0;
    const struct pace *pace = &s->work->pace;
    double seconds;
    while (!(pace->iteration_time > 0.0))
        TRY(series_take(s, 1, &seconds, error));
    *iterations =
        s->cold || s->work->ops->reset
            ? 1
            : (int)within(ceil(s->calibration.overhead / share / pace->iteration_time), 1.0, most);
    return STATUS_OK;
}

static void overhead_subtract(const struct series *s, int samples, double *seconds)
{
    for (int i = 0; i < samples; ++i)
        seconds[i] = fmax(seconds[i] - s->calibration.overhead / s->iterations, seconds[i] / 4);
}

enum status timing_run(struct gpu *gpu, struct work *work, bool cold, int samples, double *seconds,
                       struct record *record, struct error *error)
{
    const double share = 0.005; /* the timer's share of a sample's time */
    struct series s;
    int iterations;
    TRY(series_begin(gpu, work, cold, &s, error));
    if (!record) {
        TRY(series_take(&s, samples, seconds, error));
        overhead_subtract(&s, samples, seconds);
        return STATUS_OK;
    }
    TRY(sample_size(&s, share, &iterations, error));
    if (work->pace.iterations == 0) {
        work->pace.iterations = iterations;
        work->pace.given_up &=
            fills_queue(&work->pace, iterations); /* samples of this size may fit */
    }
    s.iterations = work->pace.iterations;
    s.record = record;
    s.host_paced = false;
    TRY(series_take(&s, samples, seconds, error));
    record->sample_iterations = s.iterations;
    record->timer_overhead = s.calibration.overhead;
    record->host_paced = record->host_paced == 1 || s.host_paced;
    record->sm_clock_counted = span_clock(&work->span);
    record->sm_clock_free = s.calibration.clock_free;
    return STATUS_OK;
}

/* The timer's overhead is subtracted, so samples may be short if the host enqueues slowly. */
enum status timing_compare(struct gpu *gpu, struct work *work, bool cold, double share, int samples,
                           double *seconds, struct error *error)
{
    struct series s;
    TRY(series_begin(gpu, work, cold, &s, error));
    TRY(sample_size(&s, share, &s.iterations, error));
    s.iterations = (int)within(queue_host_time / work->pace.enqueue_time, 1.0, s.iterations);
    TRY(series_take(&s, samples, seconds, error));
    overhead_subtract(&s, samples, seconds);
    return STATUS_OK;
}

enum status timing_blocked(struct gpu *gpu, double limit, gpu_enqueue *enqueue, void *argument,
                           double *seconds, struct error *error)
{
    TRY(vendor_block(gpu, limit, error));
    enum status status = vendor_record(gpu, 0, error);
    if (status == STATUS_OK)
        status = enqueue(gpu, argument, error);
    if (status == STATUS_OK)
        status = vendor_record(gpu, 1, error);
    vendor_unblock(gpu);
    TRY(status);
    TRY(vendor_synchronize(gpu, error));
    return vendor_elapsed(gpu, 0, 1, seconds, error);
}

/* ---- an iteration in a graph ---- */

static enum status launch_enqueue(struct gpu *gpu, void *graph, struct error *error)
{
    return vendor_graph_launch(gpu, graph, error);
}

enum status timing_graph(struct gpu *gpu, struct work *work, bool cold, double *seconds,
                         struct error *error)
{
    enum { LAUNCHES = 4, UNKNOWN = 2, MOST = 50 };
    const double enough = 4e-4; /* s, hides the launch of the graph and the timer's overhead */
    const double limit = 10e-3; /* s, the host's longest wait for a graph larger than the queue */
    double times[LAUNCHES];
    struct graph *graph = NULL;
    struct error refusal;
    struct stats stats;
    const double iteration = work->pace.iteration_time;
    const int iterations = iteration > 0.0 ? (int)fmin(MOST, ceil(enough / iteration)) : UNKNOWN;
    *seconds = NAN;
    if (cold || work->ops->reset)
        return STATUS_OK;
    enum status status = graph_of_work(gpu, work, iterations, &graph, &refusal);
    if (status == STATUS_DEVICE)
        *error = refusal;
    if (status)
        return status == STATUS_DEVICE ? status : STATUS_OK;
    status = vendor_reserve(gpu, 2, false, error);
    if (status == STATUS_OK)
        status = vendor_graph_launch(gpu, graph, error); /* the first launch uploads the graph */
    for (int i = 0; i < LAUNCHES && status == STATUS_OK; ++i)
        status = timing_blocked(gpu, limit, launch_enqueue, graph, &times[i], error);
    vendor_graph_drop(graph);
    TRY(status);
    TRY(stats_compute(times, LAUNCHES, &stats, error));
    *seconds = stats.median / iterations;
    return STATUS_OK;
}

/* ---- loops of a caller ---- */

struct loop_times {
    double host, caller; /* s, for one iteration */
};

static enum status loop_run(struct gpu *gpu, struct work *work, int iterations,
                            struct loop_times *times, struct error *error)
{
    if (work->ops->reset)
        TRY(work->ops->reset(gpu, work, error));
    TRY(vendor_synchronize(gpu, error));
    double begin = clock_monotonic();
    for (int i = 0; i < iterations; ++i)
        TRY(work->ops->iterate(gpu, work, error));
    times->host = (clock_monotonic() - begin) / iterations;
    TRY(vendor_synchronize(gpu, error));
    times->caller = (clock_monotonic() - begin) / iterations;
    return STATUS_OK;
}

/* A loop is long enough that the final wait hardly counts, and short enough that its launches fit
 * into the queue. With a cold cache only the host's time is recorded. It leaves out the final wait,
 * so shorter loops are enough. The confidence interval of caller_time needs at least six loops. */
enum status timing_caller(struct gpu *gpu, struct work *work, bool cold, struct record *record,
                          struct error *error)
{
    enum { MOST = 15, ITERATIONS_MOST = 1024 };
    const bool once = work->ops->reset, host_only = cold || once;
    const size_t least = host_only ? 3 : 6;
    const double length = cold ? 0.25e-3 : 1e-3, enough = (double)(least - 1) * length; /* s */
    double host[MOST], caller[MOST];
    struct loop_times times;
    struct stats stats;
    size_t count = 0;
    const double known = fmax(work->pace.enqueue_time, work->pace.iteration_time); /* s */
    int iterations =
        once || !(known > 0.0) ? 1 : (int)within(ceil(length / known), 1.0, ITERATIONS_MOST);
    TRY(loop_run(gpu, work, iterations, &times, error));
    while (!once && times.caller * iterations < 0.75 * length && iterations < ITERATIONS_MOST)
        TRY(loop_run(gpu, work, iterations *= 2, &times, error));
    for (double begin = clock_monotonic();
         count < least || (count < MOST && clock_monotonic() - begin < enough); ++count) {
        if (count > 0) /* the loop that was long enough is the first */
            TRY(loop_run(gpu, work, iterations, &times, error));
        host[count] = times.host;
        caller[count] = times.caller;
    }
    TRY(stats_compute(host, count, &stats, error));
    record->host_time = stats.median;
    if (host_only)
        return STATUS_OK;
    TRY(stats_compute(caller, count, &stats, error));
    record->caller_time = stats.median;
    record->caller_uncertainty = stats_uncertainty(&stats);
    return STATUS_OK;
}
