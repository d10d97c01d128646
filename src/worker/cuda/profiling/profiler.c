#include "worker/cuda/profiling/profiler.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "worker/cuda/profiling/collector.h"
#include "worker/cuda/profiling/cupti_process.h"

struct profiler {
    struct profiler_judge judge;
    struct profiler_trial trial;
    enum profiler_state state;
    struct outcome counters; /* of profiler_try */
    struct collector
        *collector;          /* owned; NULL until counters are tried, and where there are none */
    struct tracer *tracer;   /* owned */
    bool trace_refused;      /* CUPTI cannot be attached; that has been told */
    bool traced;             /* counters that stay were judged after a trace */
    bool judged;             /* the ratio is of what stays attached */
    unsigned judged_tensors; /* that were counted when it was judged */
    double undisturbed[PROFILER_TIMES]; /* of known kernels, with nothing attached */
    double between; /* the ratio with the tracer attached between collections; NaN: not judged */
    double ratio;
};

/* ---- states ---- */

#define TO(state) (1u << PROFILER_##state)
static const unsigned changes[PROFILER_STATES] = {
    [PROFILER_UNDECIDED] = TO(ON_TRIAL) | TO(TRACER_STAYS) | TO(LEAVES),
    [PROFILER_ON_TRIAL] = TO(UNDECIDED) | TO(COUNTERS_STAY),
    [PROFILER_TRACER_STAYS] = TO(LEAVES),
    [PROFILER_COUNTERS_STAY] = TO(COUNTERS_LOST) | TO(LEAVES),
    [PROFILER_COUNTERS_LOST] = TO(COUNTERS_STAY) | TO(TRACER_BETWEEN) | TO(LEAVES),
    [PROFILER_TRACER_BETWEEN] = TO(COUNTERS_LOST) | TO(LEAVES),
    [PROFILER_LEAVES] = TO(ON_TRIAL),
};

bool profiler_may_change(enum profiler_state from, enum profiler_state to)
{
    return changes[from] & 1u << to;
}

static void change(struct profiler *profiler, enum profiler_state state)
{
    assert(profiler_may_change(profiler->state, state));
    profiler->state = state;
    profiler->judged = false;
    profiler->ratio = NAN;
}

enum profiler_state profiler_state(const struct profiler *profiler)
{
    return profiler->state;
}

bool profiler_is_undecided(const struct profiler *profiler)
{
    return profiler->state == PROFILER_UNDECIDED || profiler->state == PROFILER_ON_TRIAL;
}

double profiler_ratio(const struct profiler *profiler)
{
    return profiler->ratio;
}

static bool stays_attached(const struct profiler *profiler)
{
    return profiler->state == PROFILER_TRACER_STAYS || profiler->state == PROFILER_COUNTERS_STAY ||
           profiler->state == PROFILER_TRACER_BETWEEN;
}

/* A collection that failed has detached CUPTI; one that succeeded may have attached it. */
static void follow_collector(struct profiler *profiler)
{
    bool attached = collector_is_attached(profiler->collector);
    switch (profiler->state) {
    case PROFILER_UNDECIDED:
        if (attached)
            change(profiler, PROFILER_ON_TRIAL);
        break;
    case PROFILER_ON_TRIAL:
        if (!attached)
            change(profiler, PROFILER_UNDECIDED);
        break;
    case PROFILER_COUNTERS_STAY:
        if (!attached)
            change(profiler,
                   collector_stays(profiler->collector) ? PROFILER_COUNTERS_LOST : PROFILER_LEAVES);
        break;
    case PROFILER_COUNTERS_LOST:
        if (attached)
            change(profiler, PROFILER_COUNTERS_STAY);
        break;
    default:
        break;
    }
}

/* What stayed attached leaves for good. */
static void leave_for_good(struct profiler *profiler)
{
    if (profiler->state == PROFILER_TRACER_STAYS || profiler->state == PROFILER_TRACER_BETWEEN)
        cupti_detach();
    if (profiler->collector)
        collector_stay(profiler->collector, false);
    change(profiler, PROFILER_LEAVES);
}

/* The counters come back with the next collection. */
static void leave_until_then(struct profiler *profiler)
{
    if (profiler->state == PROFILER_TRACER_BETWEEN) {
        cupti_detach();
        change(profiler, PROFILER_COUNTERS_LOST);
    } else if (profiler->state == PROFILER_COUNTERS_STAY) {
        collector_lend(profiler->collector);
        follow_collector(profiler);
    }
}

/* ---- known kernels ---- */

/* With nothing attached; *known: they could be timed. A device too full for the known kernels is no
 * reason to lose what is to be attached. Fails only with STATUS_DEVICE. */
static enum status judge_begin(struct profiler *profiler, bool *known, struct error *error)
{
    const struct profiler_judge *judge = &profiler->judge;
    enum status status =
        judge->measure ? judge->measure(judge->argument, profiler->undisturbed, error) : STATUS_OK;
    *known = status == STATUS_OK;
    return status == STATUS_DEVICE ? status : STATUS_OK;
}

static double worst_ratio(const double before[PROFILER_TIMES], const double after[PROFILER_TIMES])
{
    double worst = 0.0;
    for (int i = 0; i < PROFILER_TIMES; ++i)
        if (!(after[i] / before[i] <= worst))
            worst = after[i] / before[i];
    return worst;
}

/* With CUPTI attached since. If times are disturbed, it leaves for good. Fails only with
 * STATUS_DEVICE. */
static enum status judge(struct profiler *profiler, struct error *error)
{
    const double most = 0.05; /* gaps between launches shift by 3 % for no reason that is known */
    double now[PROFILER_TIMES];
    profiler->judged = true;
    profiler->judged_tensors = profiler->collector ? collector_asked(profiler->collector) : 0;
    if (!profiler->judge.measure)
        return STATUS_OK;
    enum status status = profiler->judge.measure(profiler->judge.argument, now, error);
    profiler->ratio = status == STATUS_OK ? worst_ratio(profiler->undisturbed, now) : NAN;
    if (status == STATUS_DEVICE)
        return status;
    if (!(profiler->ratio <= 1.0 + most))
        leave_for_good(profiler);
    return STATUS_OK;
}

/* ---- counters ---- */

static enum status collect(struct profiler *profiler, unsigned tensors,
                           const struct profiled_work *works, size_t count,
                           double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                           struct error *error)
{
    if (profiler->state == PROFILER_TRACER_BETWEEN)
        leave_until_then(profiler);
    enum status status =
        collector_collect(profiler->collector, tensors, works, count, values, outcome, error);
    if (status != STATUS_DEVICE)
        follow_collector(profiler);
    return status;
}

static enum status nothing(void *argument, struct error *error)
{
    (void)argument, (void)error;
    return STATUS_OK;
}

static enum status collect_trial(struct profiler *profiler, unsigned tensors,
                                 struct outcome *outcome, struct error *error)
{
    const struct profiler_trial *trial = &profiler->trial;
    const struct profiled_work work = {nothing, trial->run, trial->argument, NULL};
    double values[1][QUANTITY_COUNT];
    return collect(profiler, tensors, &work, 1, values, outcome, error);
}

/* Some refusals show only when counting begins. With all tensors, as the proofs of the roofs will ask
 * for; a device that lacks a counter of theirs still has the others. */
static enum status preflight(struct profiler *profiler, struct error *error)
{
    TRY(collect_trial(profiler, QUANTITY_ALL_TENSORS, &profiler->counters, error));
    if (profiler->counters.code == COUNTED_YES)
        return STATUS_OK;
    collector_stay(profiler->collector, true); /* forgets what was asked for */
    return collect_trial(profiler, 0, &profiler->counters, error);
}

static enum status try_opened(struct profiler *profiler, struct error *error)
{
    const struct profiler_trial *trial = &profiler->trial;
    enum status status = trial->reserve ? trial->reserve(trial->argument, error) : STATUS_OK;
    if (status == STATUS_OK)
        return preflight(profiler, error);
    if (status == STATUS_DEVICE)
        return status;
    collector_close(profiler->collector);
    profiler->collector = NULL;
    outcome_set(&profiler->counters, COUNTED_REFUSED, "%.400s", error->text);
    change(profiler, PROFILER_UNDECIDED);
    return STATUS_OK;
}

enum status profiler_try(struct profiler *profiler, int device, CUcontext context,
                         struct outcome *outcome, struct error *error)
{
    enum status status = STATUS_OK;
    if (profiler->counters.code == OUTCOME_MISSING) {
        if (profiler->state == PROFILER_TRACER_STAYS)
            leave_for_good(profiler);
        bool tracer_left = profiler->state == PROFILER_LEAVES;
        profiler->collector = collector_open(device, context, &profiler->counters);
        if (profiler->collector) {
            change(profiler, PROFILER_ON_TRIAL);
            status = try_opened(profiler, error);
        }
        if (tracer_left && profiler->state == PROFILER_UNDECIDED &&
            profiler->counters.code != COUNTED_YES)
            change(profiler, PROFILER_LEAVES);
    }
    *outcome = profiler->counters;
    return status;
}

const struct outcome *profiler_counters(const struct profiler *profiler)
{
    return &profiler->counters;
}

bool profiler_has(const struct profiler *profiler, enum quantity quantity)
{
    return collector_has(profiler->collector, quantity);
}

enum status profiler_collect(struct profiler *profiler, unsigned tensors,
                             const struct profiled_work *works, size_t count,
                             double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                             struct error *error)
{
    return collect(profiler, tensors, works, count, values, outcome, error);
}

/* Of the same work, counted twice. What comes from device memory depends on what lay in the caches.
 */
static bool counts_agree(const double first[QUANTITY_COUNT], const double second[QUANTITY_COUNT])
{
    const double flops_tolerance = 1e-3, cache_tolerance = 0.5;
    for (int i = 0; i < QUANTITY_COUNT; ++i) {
        double tolerance = i <= QUANTITY_TENSOR_INT8 ? flops_tolerance : cache_tolerance;
        if (i == QUANTITY_DRAM_READ || i == QUANTITY_DRAM_WRITE || isnan(first[i]))
            continue;
        if (!(fabs(second[i] - first[i]) <= tolerance * first[i]))
            return false;
    }
    return true;
}

/* The work is collected again, after something else, so that nothing left of the first collection passes
 * for the second. What stays attached counts all works in the same way. */
static enum status collect_again(struct profiler *profiler, unsigned tensors,
                                 const struct profiled_work *work,
                                 const double values[QUANTITY_COUNT], bool *agree,
                                 struct error *error)
{
    struct outcome outcome;
    double again[1][QUANTITY_COUNT];
    enum status status = collect_trial(profiler, 0, &outcome, error);
    if (status == STATUS_OK)
        status = collect(profiler, tensors, work, 1, again, &outcome, error);
    *agree = status || counts_agree(values, again[0]);
    return status;
}

static enum status count_and_decide(struct profiler *profiler, unsigned tensors,
                                    const struct profiled_work *work,
                                    double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                                    struct error *error)
{
    bool known, agree;
    profiler_leave(profiler);
    TRY(judge_begin(profiler, &known, error));
    collector_stay(profiler->collector, known);
    TRY(collect(profiler, tensors, work, 1, values, outcome, error));
    if (profiler->state != PROFILER_ON_TRIAL)
        return STATUS_OK; /* it failed, or nobody could judge: decided with the next one */
    change(profiler, PROFILER_COUNTERS_STAY);
    TRY(collect_again(profiler, tensors, work, values[0], &agree, error));
    if (!agree && profiler->state != PROFILER_LEAVES)
        leave_for_good(profiler);
    return profiler->state == PROFILER_COUNTERS_STAY ? judge(profiler, error) : STATUS_OK;
}

enum status profiler_count(struct profiler *profiler, unsigned tensors,
                           const struct profiled_work *works, size_t count,
                           double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                           struct error *error)
{
    if (profiler_is_undecided(profiler)) {
        TRY(count_and_decide(profiler, tensors, works, values, outcome, error));
        if (count == 1)
            return STATUS_OK;
    }
    TRY(collect(profiler, tensors, works, count, values, outcome, error));
    if (count > 1 && profiler->judge.measure)
        leave_until_then(profiler);
    return STATUS_OK;
}

enum status profiler_count_launches(struct profiler *profiler, unsigned tensors,
                                    const struct profiled_work *work, size_t launches, size_t most,
                                    double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                                    struct error *error)
{
    if (profiler->state == PROFILER_TRACER_BETWEEN)
        leave_until_then(profiler);
    enum status status = collector_collect_launches(profiler->collector, tensors, work, launches,
                                                    most, values, outcome, error);
    if (status != STATUS_DEVICE)
        follow_collector(profiler);
    return status;
}

enum status profiler_review(struct profiler *profiler, struct error *error)
{
    if (profiler->state != PROFILER_COUNTERS_STAY)
        return STATUS_OK;
    bool same = profiler->judged_tensors == collector_asked(profiler->collector);
    return profiler->judged && same ? STATUS_OK : judge(profiler, error);
}

void profiler_leave(struct profiler *profiler)
{
    if (!profiler->collector || !profiler_is_undecided(profiler))
        return;
    collector_stay(profiler->collector, false);
    follow_collector(profiler);
}

void profiler_lend(struct profiler *profiler)
{
    profiler_leave(profiler);
    leave_until_then(profiler);
}

void profiler_keep(struct profiler *profiler)
{
    if (profiler->collector && profiler->state == PROFILER_UNDECIDED)
        collector_stay(profiler->collector, true);
}

/* ---- trace ---- */

/* Between collections of several works each CUPTI stays attached for the next trace, if it leaves times
 * alone. */
static enum status trace_between(struct profiler *profiler, const struct profiled_work *work,
                                 struct outcome *outcome, struct error *error)
{
    enum status status = tracer_run(profiler->tracer, work, true, outcome, error);
    if (status && status != STATUS_DEVICE)
        cupti_detach();
    if (status)
        return status;
    change(profiler, PROFILER_TRACER_BETWEEN);
    if (isnan(profiler->between))
        status = judge(profiler, error);
    else
        profiler->ratio = profiler->between;
    profiler->between = profiler->ratio;
    return status;
}

/* Where nothing is counted, CUPTI stays attached for the next trace, if it leaves times alone. */
static enum status trace_and_decide(struct profiler *profiler, const struct profiled_work *work,
                                    struct outcome *outcome, struct error *error)
{
    bool known;
    if (profiler->state == PROFILER_COUNTERS_LOST && profiler->judge.measure)
        return trace_between(profiler, work, outcome, error);
    if (profiler->state != PROFILER_UNDECIDED || profiler->collector)
        return tracer_run(profiler->tracer, work, stays_attached(profiler), outcome, error);
    TRY(judge_begin(profiler, &known, error));
    enum status status = tracer_run(profiler->tracer, work, known, outcome, error);
    if (status && status != STATUS_DEVICE && known)
        cupti_detach(); /* decided with the next one, and so with nothing attached */
    if (status || !known)
        return status;
    change(profiler, PROFILER_TRACER_STAYS);
    return judge(profiler, error);
}

/* Tracing switches more of CUPTI on, and off again. Once is enough. */
static enum status review_after_trace(struct profiler *profiler, struct error *error)
{
    if (profiler->traced || profiler->state != PROFILER_COUNTERS_STAY)
        return STATUS_OK;
    profiler->traced = true;
    return judge(profiler, error);
}

enum status profiler_trace(struct profiler *profiler, const struct profiled_work *work,
                           struct outcome *outcome, struct error *error)
{
    outcome_set(outcome, OUTCOME_MISSING, NULL);
    profiler_leave(profiler);
    if (profiler->trace_refused) {
        tracer_forget(profiler->tracer);
        return STATUS_OK;
    }
    TRY(trace_and_decide(profiler, work, outcome, error));
    if (outcome->code != TRACED_WELL && stays_attached(profiler)) {
        leave_for_good(profiler); /* what stayed may have been in the way */
        TRY(tracer_run(profiler->tracer, work, false, outcome, error));
    }
    profiler->trace_refused = outcome->code == TRACED_REFUSED;
    return review_after_trace(profiler, error);
}

struct trace profiler_last_trace(const struct profiler *profiler)
{
    return tracer_last(profiler->tracer);
}

/* ---- life ---- */

struct profiler *profiler_open(const struct profiler_judge *judge,
                               const struct profiler_trial *trial)
{
    struct profiler *profiler = calloc(1, sizeof *profiler);
    if (!profiler)
        return NULL;
    profiler->judge = *judge;
    profiler->trial = *trial;
    profiler->counters.code = OUTCOME_MISSING;
    profiler->ratio = profiler->between = NAN;
    profiler->tracer = tracer_open();
    if (profiler->tracer)
        return profiler;
    free(profiler);
    return NULL;
}

void profiler_close(struct profiler *profiler)
{
    if (!profiler)
        return;
    tracer_close(profiler->tracer);
    collector_close(profiler->collector);
    free(profiler);
}
