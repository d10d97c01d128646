#include "worker/measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"

const struct outcome measure_no_counters = {COUNTED_REFUSED, "this kind of device has no counters"};

/* Owns nothing. */
struct run {
    const struct device_ops *device;
    struct device_state *state;
    const struct request *request;
    struct expected *expected;
    struct config config;
    struct work *work;
    double start; /* s, CLOCK_MONOTONIC */
    bool cold;
};

/* Charges the time since the end of the last part to this part. */
static void part_done(const struct run *run, enum wall_part part, struct record *record)
{
    record_end_part(record, part, clock_monotonic() - run->start);
}

struct samples {
    double *values; /* owned */
    size_t count, capacity;
    double total; /* s, of all iterations */
};

static enum status samples_reserve(struct samples *samples, size_t more, struct error *error)
{
    if (samples->count + more <= samples->capacity)
        return STATUS_OK;
    size_t capacity = 2 * samples->capacity + more;
    double *values = realloc(samples->values, capacity * sizeof *values);
    if (!values)
        return error_set(error, STATUS_FAILED, "no memory for %zu samples", capacity);
    samples->values = values;
    samples->capacity = capacity;
    return STATUS_OK;
}

static enum status time_batch(const struct run *run, int count, struct samples *samples,
                              struct record *record, struct error *error)
{
    TRY(samples_reserve(samples, (size_t)count, error));
    TRY(run->device->time(run->state, run->work, run->cold, count, samples->values + samples->count,
                          record, error));
    for (int i = 0; i < count; ++i)
        samples->total += (double)record->sample_iterations * samples->values[samples->count++];
    return STATUS_OK;
}

/* Takes samples until the confidence interval is narrow enough and min_time has been timed, or
 * until max_time has passed. A batch takes about a tenth of min_time, so that the rule is evaluated
 * often and its own cost does not show. */
static enum status time_adaptively(const struct run *run, struct samples *samples,
                                   struct record *record, struct error *error)
{
    const struct measure_settings *rule = &run->request->measure;
    const int least = 10, most = 10000;
    double begin = clock_monotonic();
    int batch = least;
    for (;;) {
        struct stats stats;
        TRY(time_batch(run, batch, samples, record, error));
        TRY(stats_compute(samples->values, samples->count, &stats, error));
        bool done = stats_uncertainty(&stats) <= rule->stop && samples->total >= rule->min_time;
        if (done || clock_monotonic() - begin >= rule->max_time) {
            record->converged = done;
            return STATUS_OK;
        }
        double mean = samples->total / (double)samples->count;
        batch = (int)fmin(fmax(0.1 * rule->min_time / mean, least), most);
    }
}

enum status measure_keep_samples(const double *samples, size_t count, struct record *record,
                                 struct stats *stats, struct error *error)
{
    size_t kept = count < RECORD_SAMPLES_MAX ? count : RECORD_SAMPLES_MAX;
    bool two = false;
    TRY(stats_compute(samples, count, stats, error));
    TRY(stats_two_modes(samples, count, &two, error));
    record->sample = malloc(kept * sizeof *record->sample);
    if (!record->sample)
        return error_set(error, STATUS_FAILED, "no memory for the samples");
    memcpy(record->sample, samples, kept * sizeof *record->sample);
    record->sample_count = kept;
    record->samples = (int64_t)count;
    record->time_median = stats->median;
    record->time_median_low = stats->median_low;
    record->time_median_high = stats->median_high;
    record->bimodal = count < STATS_MODES_LEAST ? FIELD_MISSING : two;
    record->time_mean = stats->mean;
    record->time_min = stats->min;
    record->time_max = stats->max;
    return STATUS_OK;
}

struct occupancy measure_occupancy(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    const struct timeval *user = &usage.ru_utime, *system = &usage.ru_stime;
    return (struct occupancy){clock_monotonic(),
                              (double)(user->tv_sec + system->tv_sec) +
                                  1e-6 * (double)(user->tv_usec + system->tv_usec),
                              NAN, usage.ru_nivcsw};
}

void measure_keep_occupancy(const struct occupancy *occupied, int64_t cores, struct record *record)
{
    const double all = (double)cores * occupied->wall, waiting = occupied->waiting / all;
    const double running = occupied->running / all; /* NaN without any time */
    record->threads_running = running > 1 ? 1 : running;
    record->threads_waiting =
        waiting + record->threads_running > 1 ? 1 - record->threads_running : waiting;
    record->involuntary_switches = occupied->switches;
    if (getloadavg(&record->host_load, 1) != 1)
        record->host_load = NAN;
}

/* One placement of the row's buffers in memory. The first one has the row's verified work. */
struct placement {
    struct work *work;
    struct record seen; /* the row's record, with this placement's times; owns nothing */
    struct samples samples;
    struct stats stats;
};

static enum status placement_time(struct run run, struct placement *placement, struct error *error)
{
    const struct measure_settings *measure = &run.request->measure;
    struct samples warmup = {0}, *samples = &placement->samples;
    run.work = placement->work;
    enum status status = samples_reserve(&warmup, (size_t)measure->warmup, error);
    if (status == STATUS_OK && measure->warmup > 0)
        status = run.device->time(run.state, run.work, run.cold, measure->warmup, warmup.values,
                                  NULL, error);
    if (status == STATUS_OK)
        status = measure->iterations > 0
                     ? time_batch(&run, measure->iterations, samples, &placement->seen, error)
                     : time_adaptively(&run, samples, &placement->seen, error);
    if (status == STATUS_OK)
        status = stats_compute(samples->values, samples->count, &placement->stats, error);
    free(warmup.values);
    return status;
}

/* Prepares the row once more with the same kernels. Earlier works keep their buffers, so the new
 * buffers have other addresses. `first`: the row before it was timed. STATUS_UNSUPPORTED: the
 * memory is full, or the kernels differ. */
static enum status placement_make(const struct run *run, const struct record *first,
                                  struct placement *placement, struct error *error)
{
    struct algorithm algorithm = run->request->algorithm;
    struct record *seen = &placement->seen;
    *seen = *first;
    seen->status = RECORD_MEASURED;
    if (!run->device->has_room || !run->device->has_room(run->state, &run->config))
        return error_set(error, STATUS_UNSUPPORTED, "no room");
    if (algorithm_is_known(&algorithm) || algorithm_of_record(seen, &algorithm))
        seen->offer = &algorithm;
    enum status status = run->device->prepare(run->state, &run->config, run->request->seed,
                                              &placement->work, seen, error);
    seen->offer = NULL;
    if (status == STATUS_OK && (strcmp(seen->algorithm, first->algorithm) != 0 ||
                                strcmp(seen->algorithm_id, first->algorithm_id) != 0))
        return error_set(error, STATUS_UNSUPPORTED, "other kernels");
    return status;
}

static int by_median(const void *left, const void *right)
{
    double a = ((const struct placement *)left)->stats.median;
    double b = ((const struct placement *)right)->stats.median;
    return (a > b) - (a < b);
}

/* The shares of threads of all placements together, as time_mean is the mean of all. */
static void threads_join(const struct placement *placements, size_t count, struct record *record)
{
    double time = 0, running = 0, waiting = 0; /* s */
    int64_t switches = 0;
    for (size_t i = 0; i < count; ++i) {
        const struct record *seen = &placements[i].seen;
        const double own = placements[i].stats.mean * (double)placements[i].samples.count;
        time += own;
        running += own * seen->threads_running;
        waiting += own * seen->threads_waiting;
        switches += seen->involuntary_switches == FIELD_MISSING ? 0 : seen->involuntary_switches;
    }
    record->threads_running = running / time;
    record->threads_waiting = waiting / time;
    if (record->involuntary_switches != FIELD_MISSING)
        record->involuntary_switches = switches;
}

/* Puts all samples into the record, in the order in which they were taken. The placement with the
 * median time gives all other values, and its work becomes the row's. Sorts the placements. */
static enum status placements_keep(struct placement *placements, size_t count, struct run *run,
                                   struct record *record, struct error *error)
{
    struct samples all = {0};
    struct stats stats;
    bool two = false;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; ++i) {
        const struct samples *own = &placements[i].samples;
        status = samples_reserve(&all, own->count, error);
        if (status == STATUS_OK && own->count > 0)
            memcpy(all.values + all.count, own->values, own->count * sizeof *own->values);
        all.count += status == STATUS_OK ? own->count : 0;
    }
    qsort(placements, count, sizeof *placements, by_median);
    const struct placement *middle = &placements[(count - 1) / 2];
    if (status == STATUS_OK)
        status = stats_two_modes(middle->samples.values, middle->samples.count, &two, error);
    if (status == STATUS_OK) {
        *record = middle->seen;
        threads_join(placements, count, record);
        status = measure_keep_samples(all.values, all.count, record, &stats, error);
    }
    free(all.values);
    TRY(status);
    run->work = middle->work;
    record->placements = run->request->measure.repeat > 1 ? (int64_t)count : FIELD_MISSING;
    record->bimodal = middle->samples.count < STATS_MODES_LEAST ? FIELD_MISSING : two;
    record->time_median = middle->stats.median;
    if (count > 1) {
        record->time_median_low = placements[0].stats.median;
        record->time_median_high = placements[count - 1].stats.median;
    }
    return STATUS_OK;
}

/* Times the requested number of placements, or as many as fit. Changes run->work. */
static enum status time_work(struct run *run, struct record *record, struct error *error)
{
    const size_t wanted = (size_t)fmax(run->request->measure.repeat, 1);
    struct placement *placements = calloc(wanted, sizeof *placements);
    if (!placements)
        return error_set(error, STATUS_FAILED, "no memory for %zu placements", wanted);
    placements[0].work = run->work;
    placements[0].seen = *record;
    enum status status = placement_time(*run, &placements[0], error);
    size_t count = 1, made = 1;
    while (status == STATUS_OK && made < wanted) {
        status = placement_make(run, record, &placements[made++], error);
        if (status == STATUS_OK)
            status = placement_time(*run, &placements[count++], error);
    }
    if (status == STATUS_UNSUPPORTED && made > count)
        status = STATUS_OK;
    if (status == STATUS_OK)
        status = placements_keep(placements, count, run, record, error);
    for (size_t i = 0; i < made; ++i) {
        if (placements[i].work != run->work && status != STATUS_DEVICE)
            run->device->release(run->state, placements[i].work);
        free(placements[i].samples.values);
    }
    free(placements);
    return status;
}

/* Rejects algorithms until the result is right, and with `accurate` also accurate. */
static enum status verify_prepared(const struct run *run, bool accurate, struct record *record,
                                   struct error *error)
{
    enum { ATTEMPTS = 6 };
    enum status status = STATUS_OK;
    for (int i = 0; i < ATTEMPTS; ++i) {
        struct error none;
        status = verify_work(run->device, run->state, run->work, &run->config, run->request->seed,
                             run->expected, record, error);
        part_done(run, i == 0 ? PART_VERIFY : PART_SEARCH_VERIFY, record);
        if (status == STATUS_OK && accurate && record->accuracy[0])
            status = error_set(error, STATUS_FAILED, "%s", record->accuracy);
        if (status != STATUS_FAILED || !run->device->reject)
            return status;
        enum status other = run->device->reject(run->state, run->work, record, &none);
        part_done(run, PART_SEARCH_VERIFY, record);
        if (other == STATUS_DEVICE)
            *error = none;
        if (other)
            return other == STATUS_DEVICE ? other : status;
    }
    return status;
}

/* Adds the fastest accurate algorithm to record->accuracy. The row keeps the fastest algorithm, as
 * frameworks do, so this function prepares a second work and rejects only its algorithms. */
static enum status accuracy_explain(struct run *run, struct record *record, struct error *error)
{
    struct placement other = {.work = NULL};
    struct error none;
    char *text = record->accuracy + strlen(record->accuracy);
    const size_t room = (size_t)(record->accuracy + sizeof record->accuracy - text);
    enum status status = placement_make(run, record, &other, &none);
    if (status == STATUS_OK) {
        struct run beside = *run;
        beside.work = other.work;
        status = verify_prepared(&beside, true, &other.seen, &none);
    }
    if (status == STATUS_DEVICE) {
        *error = none;
        return status;
    }
    run->device->release(run->state, other.work);
    part_done(run, PART_SEARCH_VERIFY, record);
    double ratio = other.seen.search_time / record->search_time; /* NaN: a row had no search */
    if (status == STATUS_OK && isnan(ratio))
        snprintf(text, room, "; an accurate algorithm is %s", other.seen.algorithm);
    else if (status == STATUS_OK)
        snprintf(text, room, "; the fastest accurate algorithm is %s, at %.3g times the time",
                 other.seen.algorithm, ratio);
    else
        snprintf(text, room, "; no accurate algorithm was found%s%.200s",
                 status == STATUS_FAILED ? "" : ": ", status == STATUS_FAILED ? "" : none.text);
    return STATUS_OK;
}

/* Hashes the results of the last iteration, and compares the hash with earlier iterations. */
static enum status bits_check(const struct run *run, struct record *record, struct error *error)
{
    char text[sizeof record->output_hash];
    uint64_t hash;
    if (!run->device->hash)
        return STATUS_OK;
    TRY(run->device->hash(run->state, run->work, &hash, error));
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    if (record->output_hash[0] && strcmp(record->output_hash, text) != 0)
        snprintf(text, sizeof text, "varies");
    memcpy(record->output_hash, text, sizeof text);
    return STATUS_OK;
}

/* Compares the bits of up to three iterations: the verified one (if it computed whole results), the
 * last timed one, and the very last one.
 *
 * With several placements, a row that the power cap throttles also has its energy measured, because
 * this longer run shows what the device sustains. It comes last, because it lowers the clock. */
static enum status measure_prepared(struct run *run, struct record *record, struct error *error)
{
    const struct measure_settings *measure = &run->request->measure;
    const double throttled = 0.98; /* fraction of sm_clock_free; below it the device throttles */
    enum status status = STATUS_OK;
    if (measure->verify)
        status = verify_prepared(run, false, record, error);
    if (status == STATUS_OK && record->verify_elements > 0 &&
        run->expected->expectation.samples == 0)
        status = bits_check(run, record, error);
    if (status == STATUS_OK && record->accuracy[0] && run->device->reject)
        status = accuracy_explain(run, record, error);
    if (status == STATUS_OK) {
        status = time_work(run, record, error);
        if (status == STATUS_OK)
            status = bits_check(run, record, error);
        part_done(run, PART_TIMING, record);
    }
    bool capped = record->sm_clock_counted < throttled * record->sm_clock_free &&
                  record->throttle_reasons != FIELD_MISSING &&
                  (record->throttle_reasons & THROTTLED_BY_POWER);
    const bool first = run->request->round < 2;
    bool sustained = first && (measure->energy || (measure->repeat > 1 && capped));
    if (status == STATUS_OK && first) {
        status = run->device->trace(run->state, run->work, run->cold, record, error);
        part_done(run, PART_TRACE, record);
    }
    if (status == STATUS_OK && sustained && run->device->energy) {
        status = run->device->energy(run->state, run->work, run->cold, record, error);
        part_done(run, PART_ENERGY, record);
    }
    return status ? status : bits_check(run, record, error);
}

/* Clears a failed row, except for configuration, algorithm and the errors of the result. */
static void forget_figures(struct record *record, const struct config *config)
{
    const struct record before = *record;
    record_clear(record);
    record_set_config(record, config);
#define KEEP(member) memcpy(&record->member, &before.member, sizeof record->member)
    KEEP(implementation);
    KEEP(algorithm);
    KEEP(math);
    KEEP(unit);
    KEEP(workspace);
    KEEP(refused_algorithms);
    KEEP(start_time);
    KEEP(wall_time_part);
    KEEP(verify_error);
    KEEP(verify_tolerance);
    KEEP(verify_element_error);
    KEEP(verify_elements);
    KEEP(verify_element_tolerance);
#undef KEEP
}

void measure_end(const struct device_ops *device, struct device_state *state, struct measured *row,
                 enum status status, const struct error *error)
{
    struct record *record = &row->record;
    device->release(state, row->work);
    row->work = NULL;
    if (status)
        forget_figures(record, &row->config);
    record->wall_time = row->seconds;
    record->status = status == STATUS_OK            ? RECORD_MEASURED
                     : status == STATUS_UNSUPPORTED ? RECORD_SKIPPED
                                                    : RECORD_FAILED;
    if (status)
        memcpy(record->error, error->text, sizeof error->text);
}

enum status measure_begin(const struct device_ops *device, struct device_state *state,
                          const struct request *request, struct expected *expected,
                          struct measured *row, struct error *error)
{
    struct run run = {.device = device,
                      .state = state,
                      .request = request,
                      .expected = expected,
                      .config = request->config,
                      .start = clock_monotonic()};
    struct record *record = &row->record;
    record_init(record);
    record->start_time = clock_date();
    record_set_config(record, &run.config);
    enum status status = config_check(&run.config, error);
    if (status == STATUS_OK) {
        run.cold = config_cold(&run.config);
        record->offer = algorithm_is_known(&request->algorithm) ? &request->algorithm : NULL;
        status = device->prepare(state, &run.config, request->seed, &run.work, record, error);
    }
    record->offer = NULL;
    part_done(&run, PART_PREPARE, record);
    if (status == STATUS_OK)
        status = measure_prepared(&run, record, error);
    if (status == STATUS_DEVICE) {
        record_clear(record);
        return status; /* nothing on a lost device can be released */
    }
    row->config = run.config;
    row->work = run.work;
    row->cold = run.cold;
    row->kernels = request->measure.kernels;
    row->causes = request->measure.counters == COUNTERS_CAUSES;
    row->seconds = clock_monotonic() - run.start;
    const bool wanted = request->measure.counters != COUNTERS_OFF;
    if (!wanted)
        outcome_set(&record->counters, COUNTED_OFF, NULL);
    else if (!device->count_hardware)
        record->counters = measure_no_counters;
    if (status || !wanted || !device->count_hardware)
        measure_end(device, state, row, status, error);
    return STATUS_OK;
}
