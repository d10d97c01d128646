/* The roofs of a GPU: tuning, proof, and measurement.
 *
 * Tuning runs every variant of a kind two or three times, 0.1 s for all variants together, and
 * keeps the fastest. The proof then counts a part of one run of each winner, all winners in one
 * collection of the profiler. A measurement takes samples for ROOF_WINDOW after a short warm-up
 * (the burst). On request it then measures the rate after the clock has settled (sustained), and
 * the energy.
 *
 * A variant that fails is skipped; if all variants of a kind fail, measuring the kind returns the
 * first reason. Without counters, the roofs stay unproven, with a line on stderr. A lost device
 * ends everything with STATUS_DEVICE.
 *
 * Cost: about 0.1 s of tuning and 20 to 100 ms of measuring for each kind; one collection for the
 * proof; 0.1 to 2 s more for a sustained value, and 0.7 s or more for the energy. */
#include "worker/gpu/roofs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/quantity.h"
#include "worker/gpu/arena.h"
#include "worker/gpu/energy.h"
#include "worker/gpu/roof_family.h"
#include "worker/gpu/timing.h"

static const struct roof_family *const families[] = {
    &roofs_memory,  &roofs_onchip,   &roofs_vector, &roofs_tensor,
    &roofs_library, &roofs_transfer, &roofs_launch, &roofs_chase,
};
enum { FAMILIES = sizeof families / sizeof *families };

enum {
    TRIAL_RUNS = 2,
    SAMPLES_LEAST = 5,
    SAMPLES_MAX = 64 /* each sample needs two events */
};
#define SAMPLE_TIME (ROOF_WINDOW / 5) /* s, time of a sample of an elastic variant */

/* Returns the theoretical value; NaN: vendors state none. For L2 they state that of reads only. */
static double theory_of(const struct theory *theory, int kind)
{
    const struct roof_kind *info = &roof_kinds[kind];
    if (info->measure == ROOF_TIME)
        return NAN;
    if (info->measure == ROOF_COMPUTE)
        return (info->unit == UNIT_TENSOR ? theory->tensor : theory->vector)[info->precision];
    if (kind == ROOF_SHARED_READ)
        return theory->shared_read;
    if (info->level == LEVEL_COUNT || (info->level == LEVEL_L2 && info->pattern != PATTERN_READ))
        return NAN;
    return theory->bandwidth[info->level];
}

enum status roofs_reserve(struct roofs *roofs, struct roofs_buffer *buffer, size_t bytes,
                          struct error *error)
{
    void *data;
    if (bytes <= buffer->bytes)
        return STATUS_OK;
    TRY(memory_allocate((double)bytes, "the roofs", &data, error));
    enum status status =
        vendor_fill(roofs->gpu, PRECISION_FP32, data, (int64_t)(bytes / sizeof(float)),
                    fill_make(1, TENSOR_INPUT, 24, 0), error);
    if (status) {
        vendor_free(data);
        return status;
    }
    vendor_free(buffer->data);
    *buffer = (struct roofs_buffer){data, bytes};
    return STATUS_OK;
}

/* ---- one run ---- */

double run_work(const struct variant *variant)
{
    return variant->work * (double)variant->iterations;
}

/* Enqueues a run of a family without `time`, between the events `first` and first + 1. */
static enum status run_enqueue(struct roofs *roofs, const struct winner *winner, int first,
                               struct error *error)
{
    TRY(vendor_record(roofs->gpu, first, error));
    TRY(winner->family->run(roofs, &winner->variant, error));
    return vendor_record(roofs->gpu, first + 1, error);
}

enum status run_time(struct roofs *roofs, const struct winner *winner, double *seconds,
                     struct error *error)
{
    if (winner->family->time)
        return winner->family->time(roofs, &winner->variant, seconds, error);
    TRY(run_enqueue(roofs, winner, 0, error));
    TRY(vendor_wait(roofs->gpu, 1, error));
    return vendor_elapsed(roofs->gpu, 0, 1, seconds, error);
}

/* ---- the fastest variant ---- */

/* *rate: work per second, the best of TRIAL_RUNS; a variant that cannot win runs once. A run that
 * loads code does not count. Elastic iterations grow until a run takes about `aim` s. */
static enum status trial_rate(struct roofs *roofs, struct winner *tried, double aim, double best,
                              double *rate, struct error *error)
{
    const double hopeless = 0.95, most_growth = 64.0, most = 1e6;
    struct variant *variant = &tried->variant;
    double seconds, shortest;
    if (roofs->warm_row != variant->row || roofs->warm_code != variant->code) {
        TRY(run_time(roofs, tried, &seconds, error));
        roofs->warm_row = variant->row;
        roofs->warm_code = variant->code;
    }
    TRY(run_time(roofs, tried, &shortest, error));
    while (variant->elastic && shortest < 0.5 * aim && (double)variant->iterations < most) {
        double growth = fmin(fmax(aim / shortest, 2.0), most_growth);
        variant->iterations = (int64_t)fmin((double)variant->iterations * growth, most);
        TRY(run_time(roofs, tried, &shortest, error));
    }
    for (int i = 1; i < TRIAL_RUNS && run_work(variant) / shortest > hopeless * best; ++i) {
        TRY(run_time(roofs, tried, &seconds, error));
        shortest = fmin(shortest, seconds);
    }
    *rate = run_work(variant) / shortest;
    return STATUS_OK;
}

/* Tries one variant, which becomes *winner if it is faster. *winner keeps the reason of the first
 * variant that failed. Returns STATUS_OK or STATUS_DEVICE. */
static enum status winner_try(struct roofs *roofs, int kind, int number, double aim,
                              struct winner *winner, struct error *error)
{
    struct winner tried = {.family = winner->family};
    struct error reason;
    double rate;
    const struct roof_family *family = winner->family;
    const void *row = family->row(roofs, kind, number / family->choices);
    enum status status =
        family->prepare(roofs, kind, row, number % family->choices, &tried.variant, &reason);
    if (!status)
        status = trial_rate(roofs, &tried, aim, winner->rate, &rate, &reason);
    if (status == STATUS_DEVICE) {
        *error = reason;
        return error_prefix(error, status, "%s, %s", roof_kinds[kind].name,
                            *tried.variant.text ? tried.variant.text : "before its first run");
    }
    if (status && !winner->refusal) {
        winner->refusal = status;
        winner->reason = reason;
    }
    if (status == STATUS_OK && rate > winner->rate) {
        winner->variant = tried.variant;
        winner->rate = rate;
    }
    return STATUS_OK;
}

/* Finds the fastest variant of a kind. All trials of the kind share 0.1 s, but a shorter run than 1
 * ms would mostly show the start and the end of its blocks. Returns STATUS_OK or STATUS_DEVICE. */
static enum status kind_tune(struct roofs *roofs, int kind, struct error *error)
{
    struct winner *winner = &roofs->winners[kind];
    struct variant *variant = &winner->variant;
    const double all = 0.1, least = 1e-3; /* s */
    const struct roof_family *family = NULL;
    int variants = 0;
    for (int i = 0; i < FAMILIES; ++i)
        if (families[i]->row(roofs, kind, 0))
            family = families[i];
    if (!family)
        return STATUS_OK;
    for (int row = 0; family->row(roofs, kind, row); ++row)
        variants += family->choices;
    *winner = (struct winner){.family = family, .flops_ratio = NAN};
    for (int level = 0; level < LEVEL_COUNT; ++level)
        winner->bytes_ratio[level] = NAN;
    const double aim = fmin(fmax(all / (TRIAL_RUNS * variants), least), SAMPLE_TIME);
    for (int i = 0; i < variants; ++i)
        TRY(winner_try(roofs, kind, i, aim, winner, error));
    if (winner->rate > 0) {
        winner->refusal = STATUS_OK;
        if (variant->elastic)
            variant->iterations =
                (int64_t)fmax(1.0, round(winner->rate * SAMPLE_TIME / variant->work));
    }
    return STATUS_OK;
}

/* ---- proof ---- */

struct running {
    struct roofs *roofs;
    struct winner *winner;
    struct variant variant;
};

static enum status running_enqueue(void *argument, struct error *error)
{
    const struct running *running = argument;
    return running->winner->family->run(running->roofs, &running->variant, error);
}

static enum status proof_run(void *argument, struct error *error)
{
    TRY(running_enqueue(argument, error));
    return vendor_synchronize(((const struct running *)argument)->roofs->gpu, error);
}

/* Runs one iteration: the caches then have the content that each later iteration finds. */
static enum status proof_prepare(void *argument, struct error *error)
{
    struct running first = *(const struct running *)argument;
    if (first.variant.elastic)
        first.variant.iterations = 1;
    return proof_run(&first, error);
}

static void proof_keep(int kind, const struct running *proof, const double values[QUANTITY_COUNT])
{
    const struct roof_kind *info = &roof_kinds[kind];
    struct winner *winner = proof->winner;
    const double access = info->measure == ROOF_TIME ? proof->variant.access : 1;
    double expected = access * run_work(&proof->variant), bytes[LEVEL_COUNT];
    if (info->measure == ROOF_COMPUTE) {
        enum quantity quantity = quantity_of(info->precision, info->unit == UNIT_TENSOR);
        winner->flops_ratio = quantity < QUANTITY_COUNT ? values[quantity] / expected : NAN;
        return;
    }
    quantity_bytes(values, bytes);
    for (int level = 0; level < LEVEL_COUNT; ++level) {
        enum quantity read, write;
        /* A chain moves so few bytes that writes of other work would distort the ratio. */
        if (info->measure == ROOF_TIME && quantity_of_level(level, &read, &write))
            bytes[level] = values[read];
        winner->bytes_ratio[level] = bytes[level] / expected;
    }
}

/* Counts a quarter of a sample of each winner, all in one collection: attaching the profiler takes
 * longer than counting (docs/measurements.md, "Cost of attaching CUPTI"). Cache contents do not
 * matter: each range makes many passes over a cache, or one pass over far more than the cache. If
 * the collection fails, all roofs stay unproven. */
enum status roofs_prove(struct roofs *roofs, struct profiler *profiler, struct error *error)
{
    const int64_t part = 4;
    struct running proofs[ROOF_KINDS];
    struct profiled_work works[ROOF_KINDS];
    double values[ROOF_KINDS][QUANTITY_COUNT];
    int kinds[ROOF_KINDS];
    size_t count = 0;
    struct outcome outcome;
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        struct winner *winner = &roofs->winners[kind];
        if (!winner->family || !winner->family->counted || winner->refusal)
            continue;
        struct running *proof = &proofs[count];
        *proof = (struct running){roofs, winner, winner->variant};
        if (proof->variant.elastic)
            proof->variant.iterations = (proof->variant.iterations + part - 1) / part;
        works[count] = (struct profiled_work){proof_prepare, proof_run, proof, NULL};
        kinds[count++] = kind;
    }
    if (count == 0)
        return STATUS_OK;
    enum status status = vendor_count(profiler, QUANTITY_ALL_TENSORS, works, count, NULL, 0, values,
                                      &outcome, error);
    if (status == STATUS_DEVICE)
        return status;
    if (status)
        fprintf(stderr, "the roofs stay unproven: %s\n", error->text);
    else if (outcome.code != COUNTED_YES)
        fprintf(stderr, "the roofs stay unproven: %s: %s\n", counted_word[outcome.code],
                outcome.reason);
    else
        for (size_t i = 0; i < count; ++i)
            proof_keep(kinds[i], &proofs[i], values[i]);
    return STATUS_OK;
}

/* ---- tune ---- */

enum status roofs_tune(struct roofs **roofs, struct gpu *gpu, const struct roof_request *request,
                       bool found[ROOF_KINDS], struct error *error)
{
    struct roofs *result = calloc(1, sizeof *result);
    *roofs = NULL;
    if (!result)
        return error_set(error, STATUS_SYSTEM, "no memory");
    result->gpu = gpu;
    enum status status = vendor_reserve(gpu, 2 * SAMPLES_MAX, false, error);
    for (int kind = 0; kind < ROOF_KINDS && status == STATUS_OK; ++kind)
        if (roof_requested(request, kind))
            status = kind_tune(result, kind, error);
    if (status) {
        roofs_close(result);
        return status;
    }
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        found[kind] = result->winners[kind].family != NULL;
    *roofs = result;
    return STATUS_OK;
}

void roofs_close(struct roofs *roofs)
{
    if (!roofs)
        return;
    for (int i = 0; i < FAMILIES; ++i)
        if (families[i]->close)
            families[i]->close(roofs);
    vendor_free(roofs->operands.data);
    vendor_free(roofs->results.data);
    for (int i = 0; i < CHAINS; ++i)
        vendor_free(roofs->chains[i].data);
    free(roofs);
}

static const double settling = 0.005; /* s; a load of this time raises an idle device's clock */

/* ---- the burst ---- */

static enum status warm_run(struct roofs *roofs, const struct winner *winner, double *each,
                            struct error *error)
{
    double begin = clock_monotonic(), seconds;
    TRY(run_time(roofs, winner, &seconds, error));
    *each = clock_monotonic() - begin;
    return STATUS_OK;
}

/* A load of the tensor units leaves a low clock for a while. The next burst of the tensor units,
 * and measurements of times, wait until the clock has recovered. */
static bool is_tensor(int kind)
{
    return roof_kinds[kind].measure == ROOF_COMPUTE && roof_kinds[kind].unit == UNIT_TENSOR;
}

/* Runs the winner until the clock has risen, or until the common `start` (s since the epoch; 0:
 * none). For compute roofs the device idles until shortly before a common start, because a longer
 * load would lower the clock. *each: s that one run keeps the host busy. */
static enum status warm_up(struct roofs *roofs, const struct winner *winner, int kind, double start,
                           double *each, struct error *error)
{
    const double margin = 0.5e-3, pause = 5e-3; /* s */
    const bool together = start > 0.0, compute = roof_kinds[kind].measure == ROOF_COMPUTE;
    const bool rests = is_tensor(kind) || roof_kinds[kind].measure == ROOF_TIME;
    while (rests && !together && clock_epoch() + settling < roofs->rests_until)
        ;
    /* A device that was busy has its clock, but bursts of tensor units need the same warm-up. */
    const bool warm = clock_epoch() - roofs->busy_until < pause && !is_tensor(kind);
    const double end = together ? start - margin : clock_epoch() + (warm ? 0.0 : settling);
    TRY(warm_run(roofs, winner, each, error));
    while (compute && clock_epoch() + *each + settling < start)
        ;
    while (clock_epoch() + (together ? *each : 0.0) < end)
        TRY(warm_run(roofs, winner, each, error));
    return STATUS_OK;
}

/* All runs are enqueued at once, so that the device never waits for the host. */
static enum status samples_take(struct roofs *roofs, const struct winner *winner, int count,
                                double *seconds, struct roof *roof, struct error *error)
{
    double driver_clock; /* unused: the device's own clocks are more exact */
    const struct conditions conditions = {
        .sm_clock = &driver_clock,
        .memory_clock = &roof->memory_clock,
        .temperature = &roof->temperature,
        .throttle_reasons = &roof->throttle_reasons,
        .throttled = &roof->throttled,
    };
    TRY(vendor_stamp(roofs->gpu, SPAN_BEGIN, error));
    roof->start_time = clock_date();
    for (int i = 0; i < count; ++i)
        if (winner->family->time)
            TRY(winner->family->time(roofs, &winner->variant, &seconds[i], error));
        else
            TRY(run_enqueue(roofs, winner, 2 * i, error));
    TRY(vendor_stamp(roofs->gpu, SPAN_END, error));
    vendor_conditions(roofs->gpu, 2 * count - 1, &conditions);
    TRY(vendor_synchronize(roofs->gpu, error));
    for (int i = 0; i < count && !winner->family->time; ++i)
        TRY(vendor_elapsed(roofs->gpu, 2 * i, 2 * i + 1, &seconds[i], error));
    return timing_clock(roofs->gpu, &roof->sm_clock, error);
}

/* Takes samples for ROOF_WINDOW, before power and heat lower the clock. Sets value, statistics,
 * clock and conditions of *roof. start: as in struct roof_order. */
static enum status samples_burst(struct roofs *roofs, struct winner *winner, int kind, double start,
                                 struct roof *roof, struct error *error)
{
    const double cooling = 0.06, late = 5e-3; /* s */
    double seconds[SAMPLES_MAX], each;
    TRY(warm_up(roofs, winner, kind, start, &each, error));
    if (start > 0.0 && clock_epoch() > start + late)
        return error_set(error, STATUS_FAILED, "too late: it was to begin %.3g s ago",
                         clock_epoch() - start);
    while (clock_epoch() < start)
        ;
    int count = (int)fmin(fmax(ceil(ROOF_WINDOW / each), SAMPLES_LEAST), SAMPLES_MAX);
    TRY(samples_take(roofs, winner, count, seconds, roof, error));
    roof_set_samples(roof, run_work(&winner->variant), seconds, count);
    winner->clock = roof->sm_clock;
    roofs->busy_until = clock_epoch();
    if (is_tensor(kind))
        roofs->rests_until = roofs->busy_until + cooling;
    return STATUS_OK;
}

/* ---- sustained ---- */

static const double window_time = 0.1; /* s */
/* The driver keeps the mean power of about a second below the limit: a load may draw a few per cent
 * more than the limit, and then less for some tenths of a second. */
enum { WINDOWS_LEAST = 3, WINDOWS_STILL = 5, WINDOWS_OF_AVERAGE = 10, WINDOWS_MOST = 20 };

struct window {
    double begin;         /* s since the epoch */
    double seconds, work; /* s on the device; bytes or FLOPs */
    double clock;         /* s-1 */
    double power;         /* W; NaN: unknown */
};

/* each: s of a run, estimated. */
static enum status window_run(struct roofs *roofs, const struct winner *winner, double each,
                              struct window *window, struct error *error)
{
    const int runs = (int)fmax(1.0, ceil(window_time / each));
    window->begin = clock_epoch();
    TRY(vendor_stamp(roofs->gpu, SPAN_BEGIN, error));
    TRY(vendor_record(roofs->gpu, 0, error));
    for (int i = 0; i < runs; ++i)
        TRY(winner->family->run(roofs, &winner->variant, error));
    TRY(vendor_record(roofs->gpu, 1, error));
    TRY(vendor_stamp(roofs->gpu, SPAN_END, error));
    TRY(vendor_synchronize(roofs->gpu, error));
    TRY(vendor_elapsed(roofs->gpu, 0, 1, &window->seconds, error));
    window->work = run_work(&winner->variant) * runs;
    window->power = vendor_power(roofs->gpu, window->begin);
    return timing_clock(roofs->gpu, &window->clock, error);
}

/* Means over some windows. */
struct view {
    double rate, clock, power; /* work per s, s-1, W; power NaN: unknown */
};

static struct view view_of(const struct window *windows, int count)
{
    double work = 0.0, seconds = 0.0, cycles = 0.0, joules = 0.0, sensed = 0.0;
    for (int i = 0; i < count; ++i) {
        const struct window *window = &windows[i];
        work += window->work;
        seconds += window->seconds;
        cycles += window->clock * window->seconds;
        if (isnan(window->power)) /* the sensor had no new value */
            continue;
        joules += window->power * window->seconds;
        sensed += window->seconds;
    }
    return (struct view){work / seconds, cycles / seconds, sensed > 0.0 ? joules / sensed : NAN};
}

/* A mean power between these fractions of the limit shows that the limit holds the device back. */
static const double under = 0.98, over = 1.002;
static const double same = 0.01; /* relative; clocks change in steps of 15 MHz, about 1 % */

/* Returns whether nothing limits the device: the last two windows have the burst's clock, and draw
 * no more power than allowed. The burst counts as the window before the first one. While the power
 * is unknown, the device gets another window. */
static bool is_free(const struct roofs *roofs, const struct winner *winner,
                    const struct window *last, int count)
{
    const int few = count > 1 ? 2 : 1;
    const double power = view_of(last - few, few).power;
    for (int i = 1; i <= few; ++i)
        if (!(fabs(last[-i].clock - winner->clock) <= same * winner->clock))
            return false;
    return isnan(power) ? count >= WINDOWS_LEAST : !(power > over * vendor_power_limit(roofs->gpu));
}

/* Returns whether the clock is constant, and the power does not exceed its limit. */
static bool is_still(const struct roofs *roofs, const struct window *windows, int count)
{
    double lowest = windows[0].clock, highest = lowest;
    for (int i = 1; i < count; ++i) {
        lowest = fmin(lowest, windows[i].clock);
        highest = fmax(highest, windows[i].clock);
    }
    return highest <= (1.0 + same) * lowest &&
           !(view_of(windows, count).power > over * vendor_power_limit(roofs->gpu));
}

/* Returns the largest number of last windows whose mean power is at the limit; 0: none. The first
 * window does not count, because the clock falls during it. One window is enough: while the power
 * is at its limit, the device has the clock at which it will settle. */
static int limited_windows(const struct roofs *roofs, const struct window *last, int count)
{
    const double limit = vendor_power_limit(roofs->gpu);
    for (int many = count - 1; many > 0; --many) {
        const double power = view_of(last - many, many).power;
        if (power >= under * limit && power <= over * limit)
            return many;
    }
    return 0;
}

/* Returns how many of the last windows give the sustained value; 0: the device has not settled. */
static int windows_settled(const struct roofs *roofs, const struct winner *winner,
                           const struct window *windows, int count)
{
    const struct window *last = windows + count;
    if (is_free(roofs, winner, last, count))
        return count > 1 ? 2 : 1;
    const int limited = limited_windows(roofs, last, count);
    if (limited > 0)
        return limited;
    const bool still =
        count >= WINDOWS_STILL && is_still(roofs, last - WINDOWS_STILL, WINDOWS_STILL);
    return still ? WINDOWS_STILL : 0;
}

/* Runs windows until the device has settled (nothing limits it, its mean power is at the limit, or
 * its clock was constant for 0.5 s), for at most 2 s. Only for families without `time`. */
static enum status samples_sustain(struct roofs *roofs, const struct winner *winner,
                                   struct roof *roof, struct error *error)
{
    const double each = run_work(&winner->variant) / winner->rate;
    const double cooling = 0.1; /* s */
    struct window windows[WINDOWS_MOST];
    int count = 0, settled = 0;
    double first; /* s, of a run that may fill operands; unused */
    TRY(run_time(roofs, winner, &first, error));
    if (isnan(roof->start_time)) /* no burst has set the time */
        roof->start_time = clock_date();
    while (count < WINDOWS_MOST && settled == 0) {
        TRY(window_run(roofs, winner, each, &windows[count++], error));
        settled = windows_settled(roofs, winner, windows, count);
    }
    const int seen = settled > 0 ? settled : WINDOWS_OF_AVERAGE;
    const struct view view = view_of(windows + count - seen, seen);
    roofs->busy_until = clock_epoch();
    roofs->rests_until = roofs->busy_until + cooling;
    roof->sustained = view.rate;
    roof->sustained_clock = view.clock;
    roof->sustained_power = view.power;
    roof->settling_time = roofs->busy_until - roof->start_time;
    roof->settled = settled > 0;
    return STATUS_OK;
}

/* ---- energy ---- */

/* roof->energy excludes the constant power. It stays missing without an energy counter. */
static enum status samples_energy(struct roofs *roofs, struct winner *winner,
                                  struct resting_power *resting, struct roof *roof,
                                  struct error *error)
{
    const double cooling = 0.1 /* s */, work = run_work(&winner->variant);
    struct running own = {roofs, winner, winner->variant};
    const struct energy_load load = {running_enqueue, &own, work / winner->rate};
    struct energy_means means;
    TRY(energy_rest(roofs->gpu, true, resting, error));
    TRY(energy_measure(roofs->gpu, &load, &means, error));
    roofs->busy_until = clock_epoch();
    roofs->rests_until = roofs->busy_until + cooling;
    roof->energy_power = means.power;
    roof->constant_power = resting->constant;
    roof->rest_power = resting->idle;
    if (means.power > resting->constant)
        roof->energy = (means.power - resting->constant) * means.time / work;
    return STATUS_OK;
}

/* ---- measure ---- */

static enum status winner_check(const struct roofs *roofs, int kind, struct error *error)
{
    if (!roofs || !roofs->winners[kind].family)
        return error_set(error, STATUS_FAILED, "%s was not tuned", roof_kinds[kind].name);
    if (roofs->winners[kind].refusal)
        *error = roofs->winners[kind].reason;
    return roofs->winners[kind].refusal;
}

enum status roofs_measure(struct roofs *roofs, int kind, const struct roof_order *order,
                          struct resting_power *resting, struct roof *roof, struct error *error)
{
    struct roof measured = *roof;
    TRY(winner_check(roofs, kind, error));
    struct winner *winner = &roofs->winners[kind];
    const struct theory *theory = vendor_theory(roofs->gpu);
    const bool compute = roof_kinds[kind].measure == ROOF_COMPUTE;
    const bool dram = roof_kinds[kind].level == LEVEL_DRAM;
    snprintf(measured.setting, sizeof measured.setting, "%s", winner->variant.text);
    if (!compute || !order->only_sustained)
        TRY(samples_burst(roofs, winner, kind, order->start, &measured, error));
    if (order->sustained && compute)
        TRY(samples_sustain(roofs, winner, &measured, error));
    if (order->sustained && winner->family->reach)
        TRY(winner->family->reach(roofs, kind, &measured.working_set, error));
    /* copy engines, chains and launches have no energy */
    if (order->energy && winner->family->counted && roof_kinds[kind].measure != ROOF_TIME)
        TRY(samples_energy(roofs, winner, resting, &measured, error));
    roof_set_theory(&measured, theory_of(theory, kind), dram ? theory->memory_clock : theory->clock,
                    dram ? measured.memory_clock : measured.sm_clock);
    measured.flops_ratio = winner->flops_ratio;
    memcpy(measured.bytes_ratio, winner->bytes_ratio, sizeof measured.bytes_ratio);
    roof_judge(&measured);
    *roof = measured;
    return STATUS_OK;
}

enum status roofs_keep_busy(struct roofs *roofs, int kind, bool (*more)(void *argument),
                            void *argument, struct error *error)
{
    double seconds;
    TRY(winner_check(roofs, kind, error));
    while (more(argument))
        TRY(run_time(roofs, &roofs->winners[kind], &seconds, error));
    return STATUS_OK;
}
