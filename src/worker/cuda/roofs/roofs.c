#include "worker/cuda/roofs/roofs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "base/clock.h"

static const struct roof_family *const families[] = {
    &roofs_memory,  &roofs_onchip,   &roofs_vector, &roofs_tensor,
    &roofs_library, &roofs_transfer, &roofs_launch,
};
enum {
    FAMILIES = sizeof families / sizeof *families,
    SAMPLES_LEAST = 5,
    SAMPLES_MAX = 64,
    TRIAL_RUNS = 3 /* of a candidate */
};

static const double sample_time = ROOF_WINDOW / 8; /* s, one sample of a measurement */

enum status roofs_reserve(struct roofs *roofs, struct roofs_buffer *buffer, size_t bytes,
                          struct error *error)
{
    void *data;
    if (bytes <= buffer->bytes)
        return STATUS_OK;
    TRY(memory_allocate((double)bytes, "the roofs", &data, error));
    enum status status =
        CUDA(kernel_fill(PRECISION_FP32, data, (int64_t)(bytes / sizeof(float)),
                         fill_make(1, TENSOR_INPUT, 24, 0), 0, roofs->state->stream));
    if (status) {
        cudaFree(data);
        return status;
    }
    cudaFree(buffer->data);
    *buffer = (struct roofs_buffer){data, bytes};
    return STATUS_OK;
}

int candidate_take(int *candidate, int count)
{
    int taken = *candidate % count;
    *candidate /= count;
    return taken;
}

/* ---- one run ---- */

static enum status elapsed(struct roofs *roofs, int first, double *seconds, struct error *error)
{
    const cudaEvent_t *events = roofs->state->events;
    float milliseconds;
    TRY(CUDA(cudaEventElapsedTime(&milliseconds, events[first], events[first + 1])));
    *seconds = 1e-3 * (double)milliseconds;
    return STATUS_OK;
}

static enum status enqueue_between(struct roofs *roofs, const struct winner *winner, int first,
                                   struct error *error)
{
    cudaEvent_t *events = roofs->state->events;
    TRY(CUDA(cudaEventRecord(events[first], roofs->state->stream)));
    TRY(winner->family->run(roofs, &winner->way, error));
    return CUDA(cudaEventRecord(events[first + 1], roofs->state->stream));
}

static enum status run_time(struct roofs *roofs, const struct winner *winner, double *seconds,
                            struct error *error)
{
    if (winner->family->time)
        return winner->family->time(roofs, &winner->way, seconds, error);
    TRY(enqueue_between(roofs, winner, 0, error));
    TRY(CUDA(cudaEventSynchronize(roofs->state->events[1])));
    return elapsed(roofs, 0, seconds, error);
}

static double work_of(const struct way *way)
{
    return way->work * (double)way->iterations;
}

/* ---- the fastest way ---- */

/* Grows elastic iterations until a run takes `aim`, more or less, and gives its time. */
static enum status way_size(struct roofs *roofs, struct winner *winner, double aim, double *seconds,
                            struct error *error)
{
    const double most_growth = 64.0, most = 1e6;
    struct way *way = &winner->way;
    TRY(run_time(roofs, winner, seconds, error));
    while (way->elastic && *seconds < 0.5 * aim && (double)way->iterations < most) {
        double growth = fmin(fmax(aim / *seconds, 2.0), most_growth);
        way->iterations = (int64_t)fmin((double)way->iterations * growth, most);
        TRY(run_time(roofs, winner, seconds, error));
    }
    return STATUS_OK;
}

/* The first run of other code loads it, and finds nothing of what it works on in the cache. */
static enum status way_warm(struct roofs *roofs, const struct winner *tried, struct error *error)
{
    const struct way *way = &tried->way;
    double seconds;
    if (roofs->warm_row == way->row && roofs->warm_choice == way->choice)
        return STATUS_OK;
    TRY(run_time(roofs, tried, &seconds, error));
    roofs->warm_row = way->row;
    roofs->warm_choice = way->choice;
    return STATUS_OK;
}

/* How long a run of each is to take. Of short ones how blocks begin and end decides, where they are
 * close, and not the pace of a sample; but many candidates have little time each. */
static double trial_time(int candidates)
{
    const double all = 0.1, least = 1e-3; /* s */
    return fmin(fmax(all / (TRIAL_RUNS * candidates), least), sample_time);
}

/* Work per second, the best of a few runs; after one that shows that it cannot win, no more. */
static enum status trial_rate(struct roofs *roofs, struct winner *tried, double aim, double best,
                              double *rate, struct error *error)
{
    const double hopeless = 0.8;
    double seconds, shortest;
    TRY(way_warm(roofs, tried, error));
    TRY(way_size(roofs, tried, aim, &shortest, error));
    for (int i = 1; i < TRIAL_RUNS && work_of(&tried->way) / shortest > hopeless * best; ++i) {
        TRY(run_time(roofs, tried, &seconds, error));
        shortest = fmin(shortest, seconds);
    }
    *rate = work_of(&tried->way) / shortest;
    return STATUS_OK;
}

/* A winner's samples are longer than a candidate's; rounded up, since passes over device memory are
 * few. */
static void way_stretch(struct way *way, double rate)
{
    if (way->elastic)
        way->iterations = (int64_t)fmax(1.0, ceil(rate * sample_time / way->work));
}

static enum status trial(struct roofs *roofs, int kind, int candidate, struct winner *tried,
                         double aim, double best, double *rate, struct error *error)
{
    TRY(tried->family->choose(roofs, kind, candidate, &tried->way, error));
    return trial_rate(roofs, tried, aim, best, rate, error);
}

/* One that cannot be done is passed over; if none can, the first one's reason is kept. Fails only
 * with STATUS_DEVICE. */
static enum status winner_find(struct roofs *roofs, int kind, int candidates, struct winner *winner,
                               struct error *error)
{
    const double aim = trial_time(candidates);
    double best = 0.0;
    enum status refusal = STATUS_OK;
    struct winner found = *winner;
    for (int i = 0; i < candidates; ++i) {
        struct winner tried = {.family = winner->family};
        struct error reason;
        double rate;
        enum status status = trial(roofs, kind, i, &tried, aim, best, &rate, &reason);
        if (status == STATUS_DEVICE) {
            *error = reason;
            error_prefix(error, "%s, %s", roof_kinds[kind].name,
                         *tried.way.text ? tried.way.text : "before its first run");
            return status;
        }
        if (status && !refusal) {
            refusal = status;
            found.reason = reason;
        }
        if (status == STATUS_OK && rate > best) {
            best = rate;
            found.way = tried.way;
        }
    }
    found.refusal = best > 0.0 ? STATUS_OK : refusal;
    if (best > 0.0)
        way_stretch(&found.way, best);
    *winner = found;
    return STATUS_OK;
}

static void winner_init(struct winner *winner, const struct roof_family *family)
{
    *winner = (struct winner){.family = family, .flops_ratio = NAN};
    for (int level = 0; level < LEVEL_COUNT; ++level)
        winner->bytes_ratio[level] = NAN;
}

static enum status kind_tune(struct roofs *roofs, int kind, struct error *error)
{
    struct winner *winner = &roofs->winners[kind];
    for (int i = 0; i < FAMILIES; ++i) {
        int candidates = families[i]->candidates(roofs, kind);
        if (candidates == 0)
            continue;
        winner_init(winner, families[i]);
        return winner_find(roofs, kind, candidates, winner, error);
    }
    return STATUS_OK;
}

/* ---- proof: a run of each winner, counted ---- */

struct proof {
    struct roofs *roofs;
    struct winner *winner;
    struct way way;
};

/* FLOPs are as exact in a part of a sample. Bytes are not: what lies in the caches before and after
 * must not matter. */
static struct way proof_way(int kind, const struct way *way)
{
    const int64_t part = 4;
    struct way shorter = *way;
    if (way->elastic && roof_kinds[kind].measure == ROOF_COMPUTE)
        shorter.iterations = (way->iterations + part - 1) / part;
    return shorter;
}

static enum status proof_run(void *argument, struct error *error)
{
    const struct proof *proof = argument;
    TRY(proof->winner->family->run(proof->roofs, &proof->way, error));
    return CUDA(cudaStreamSynchronize(proof->roofs->state->stream));
}

/* The kernels of the roofs: not the copy engines, whose bytes are nobody's. */
static bool proof_possible(const struct winner *winner)
{
    return winner->family && winner->refusal == STATUS_OK && winner->family != &roofs_transfer &&
           winner->family != &roofs_launch;
}

static void proof_keep(int kind, const struct proof *proof, const double values[QUANTITY_COUNT])
{
    const struct roof_kind *info = &roof_kinds[kind];
    struct winner *winner = proof->winner;
    double expected = work_of(&proof->way), bytes[LEVEL_COUNT];
    if (info->measure == ROOF_COMPUTE) {
        enum quantity quantity = quantity_of(info->precision, info->unit == UNIT_TENSOR);
        winner->flops_ratio = quantity < QUANTITY_COUNT ? values[quantity] / expected : NAN;
        return;
    }
    quantity_bytes(values, bytes);
    for (int level = 0; level < LEVEL_COUNT; ++level)
        winner->bytes_ratio[level] = bytes[level] / expected;
}

/* As ranges of one collection: attaching the profiler costs 0.2 s, and on a node of several devices,
 * which prove at the same time, several times that. Where it fails, all stay unproven. */
static enum status winners_prove(struct roofs *roofs, struct error *error)
{
    struct proof proofs[ROOF_KINDS];
    struct counters_work works[ROOF_KINDS];
    double values[ROOF_KINDS][QUANTITY_COUNT];
    int kinds[ROOF_KINDS];
    size_t count = 0;
    char outcome[COUNTERS_TEXT];
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        if (proof_possible(&roofs->winners[kind])) {
            kinds[count] = kind;
            struct winner *winner = &roofs->winners[kind];
            proofs[count] = (struct proof){roofs, winner, proof_way(kind, &winner->way)};
            works[count] = (struct counters_work){proof_run, proof_run, &proofs[count]};
            ++count;
        }
    if (count == 0 || strcmp(roofs->state->counters_outcome, "counted") != 0)
        return STATUS_OK;
    enum status status = counters_collect_each(roofs->state->counters, QUANTITY_ALL_TENSORS, works,
                                               count, values, outcome, error);
    if (status == STATUS_DEVICE)
        return status;
    if (status || strcmp(outcome, "counted") != 0)
        fprintf(stderr, "the roofs stay unproven: %s\n", status ? error->text : outcome);
    else
        for (size_t i = 0; i < count; ++i)
            proof_keep(kinds[i], &proofs[i], values[i]);
    return STATUS_OK;
}

/* ---- tune ---- */

static enum status tune(struct roofs *roofs, const struct roof_request *request, bool prove,
                        struct error *error)
{
    if (prove) /* now: later the neighbours have contexts on this device, for their copies */
        TRY(count_open(roofs->state, error));
    TRY(timing_reserve(roofs->state, 2 * SAMPLES_MAX, error));
    /* All devices of a node tune at once. What the neighbour copies here would be counted among the
     * proofs: so that comes first, and these last. */
    int copy = roof_kind_find("device to device");
    if (roof_requested(request, copy))
        TRY(kind_tune(roofs, copy, error));
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        if (kind != copy && roof_requested(request, kind))
            TRY(kind_tune(roofs, kind, error));
    return prove ? winners_prove(roofs, error) : STATUS_OK;
}

enum status roofs_tune(struct device_state *state, const struct roof_request *request, bool prove,
                       bool found[ROOF_KINDS], struct error *error)
{
    roofs_release(state);
    state->roofs = calloc(1, sizeof *state->roofs);
    if (!state->roofs)
        return error_set(error, STATUS_SYSTEM, "no memory");
    state->roofs->state = state;
    enum status status = tune(state->roofs, request, prove, error);
    if (status != STATUS_DEVICE)
        count_withdraw(state);
    if (status) {
        roofs_release(state);
        return status;
    }
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        found[kind] = state->roofs->winners[kind].family != NULL;
    return STATUS_OK;
}

void roofs_release(struct device_state *state)
{
    struct roofs *roofs = state->roofs;
    if (!roofs)
        return;
    for (int i = 0; i < FAMILIES; ++i)
        if (families[i]->close)
            families[i]->close(roofs);
    cudaFree(roofs->operands.data);
    cudaFree(roofs->results.data);
    free(roofs);
    state->roofs = NULL;
}

/* ---- measure ---- */

/* Runs until the clock has settled under this load; or, with a common start, until then. each: how
 * long the host is busy with one run. */
static enum status warm_up(struct roofs *roofs, const struct winner *winner, double start,
                           double *each, struct error *error)
{
    const double settling = 0.010, margin = 0.5e-3; /* s */
    double end = start > 0.0 ? start - margin : clock_epoch() + settling;
    do {
        double begin = clock_monotonic(), seconds;
        TRY(run_time(roofs, winner, &seconds, error));
        *each = clock_monotonic() - begin;
    } while (clock_epoch() + (start > 0.0 ? *each : 0.0) < end);
    return STATUS_OK;
}

static enum status wait_until(double start, struct error *error)
{
    const double late = 5e-3; /* s */
    if (start > 0.0 && clock_epoch() > start + late)
        return error_set(error, STATUS_FAILED, "too late: it was to begin %.3g s ago",
                         clock_epoch() - start);
    while (clock_epoch() < start)
        ;
    return STATUS_OK;
}

/* Those of `time` one by one; runs all at once, so that no host comes between them. */
static enum status samples_enqueue(struct roofs *roofs, const struct winner *winner, int count,
                                   double *seconds, struct error *error)
{
    for (int i = 0; i < count; ++i)
        if (winner->family->time)
            TRY(winner->family->time(roofs, &winner->way, &seconds[i], error));
        else
            TRY(enqueue_between(roofs, winner, 2 * i, error));
    return STATUS_OK;
}

static enum status samples_take(struct roofs *roofs, const struct winner *winner, int count,
                                double *seconds, struct roof *roof, struct error *error)
{
    double told_clock; /* by the driver; the device's own counters say it better */
    const struct conditions seen = {
        .sm_clock = &told_clock,
        .memory_clock = &roof->memory_clock,
        .temperature = &roof->temperature,
        .throttle_reasons = &roof->throttle_reasons,
        .throttled = &roof->throttled,
    };
    TRY(timing_stamp(roofs->state, TIMING_BEGIN, error));
    roof->start_time = clock_epoch();
    TRY(samples_enqueue(roofs, winner, count, seconds, error));
    TRY(timing_stamp(roofs->state, TIMING_END, error));
    nvml_sample(roofs->state->nvml, roofs->state->events[2 * count - 1], &seen);
    TRY(CUDA(cudaStreamSynchronize(roofs->state->stream)));
    for (int i = 0; i < count && !winner->family->time; ++i)
        TRY(elapsed(roofs, 2 * i, &seconds[i], error));
    return timing_clock(roofs->state, &roof->sm_clock, error);
}

static void ratios_copy(const struct winner *winner, struct roof *roof)
{
    roof->flops_ratio = winner->flops_ratio;
    memcpy(roof->bytes_ratio, winner->bytes_ratio, sizeof roof->bytes_ratio);
}

/* What vendors state of L2 is of reads. */
static void theory_set(const struct theory *theory, int kind, struct roof *roof)
{
    const struct roof_kind *info = &roof_kinds[kind];
    bool memory = info->measure == ROOF_BANDWIDTH && info->level == LEVEL_DRAM;
    double value = NAN;
    if (info->measure == ROOF_COMPUTE)
        value = (info->unit == UNIT_TENSOR ? theory->tensor : theory->vector)[info->precision];
    else if (memory || strcmp(info->name, "l2 read") == 0 || strcmp(info->name, "l1 read") == 0)
        value = theory->bandwidth[info->level];
    else if (strcmp(info->name, "shared read") == 0)
        value = theory->shared_read;
    roof_set_theory(roof, value, memory ? theory->memory_clock : theory->clock,
                    memory ? roof->memory_clock : roof->sm_clock);
}

static enum status measure(struct roofs *roofs, int kind, double start, struct roof *roof,
                           struct error *error)
{
    const struct winner *winner = &roofs->winners[kind];
    const double since = clock_epoch();
    double seconds[SAMPLES_MAX], each;
    TRY(warm_up(roofs, winner, start, &each, error));
    TRY(wait_until(start, error));
    int count = (int)fmin(fmax(ceil(ROOF_WINDOW / each), SAMPLES_LEAST), SAMPLES_MAX);
    TRY(samples_take(roofs, winner, count, seconds, roof, error));
    roof->power = nvml_power(roofs->state->nvml, since);
    snprintf(roof->setting, sizeof roof->setting, "%s", winner->way.text);
    roof_set_samples(roof, work_of(&winner->way), seconds, count);
    theory_set(&roofs->state->theory, kind, roof);
    ratios_copy(winner, roof);
    roof_judge(roof);
    return STATUS_OK;
}

enum status roofs_measure(struct device_state *state, int kind, double start, struct roof *roof,
                          struct error *error)
{
    struct roofs *roofs = state->roofs;
    struct roof measured = *roof;
    if (!roofs || !roofs->winners[kind].family)
        return error_set(error, STATUS_FAILED, "%s was not tuned", roof_kinds[kind].name);
    const struct winner *winner = &roofs->winners[kind];
    if (winner->refusal) {
        *error = winner->reason;
        return winner->refusal;
    }
    TRY(measure(roofs, kind, start, &measured, error));
    *roof = measured;
    return STATUS_OK;
}
