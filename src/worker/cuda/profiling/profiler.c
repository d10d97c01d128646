#include "worker/cuda/profiling/profiler.h"

#include <math.h>
#include <stdlib.h>

#include "worker/cuda/profiling/counters.h"

struct profiler {
    struct profiler_judge judge;
    struct profiler_trial trial;
    struct outcome tried;      /* of profiler_try */
    struct counters *counters; /* owned; NULL until they are tried, and where there are none */
    struct tracer *tracer;     /* owned */
    bool tracer_leaves;        /* after each trace: it disturbs times, or did not trace twice */
    bool trace_refused;        /* CUPTI cannot be attached; that has been told */
    bool judged;               /* the ratio is of the tracer; there is none without a judge */
    double ratio;
};

/* ---- what is attached ---- */

enum profiler_attached profiler_attached(const struct profiler *profiler)
{
    if (tracer_is_attached(profiler->tracer))
        return PROFILER_TRACER;
    return counters_are_attached(profiler->counters) ? PROFILER_COUNTERS : PROFILER_NOTHING;
}

double profiler_ratio(const struct profiler *profiler)
{
    return tracer_is_attached(profiler->tracer) ? profiler->ratio : NAN;
}

void profiler_leave(struct profiler *profiler)
{
    if (profiler->counters)
        counters_detach(profiler->counters);
}

void profiler_lend(struct profiler *profiler)
{
    profiler_leave(profiler);
    tracer_detach(profiler->tracer);
}

/* ---- counters ---- */

static enum status nothing(void *argument, struct error *error)
{
    (void)argument, (void)error;
    return STATUS_OK;
}

static enum status count_trial(struct profiler *profiler, unsigned tensors, struct error *error)
{
    const struct profiler_trial *trial = &profiler->trial;
    const struct profiled_work work = {nothing, trial->run, trial->argument, NULL};
    double values[1][QUANTITY_COUNT];
    enum status status =
        profiler_count(profiler, tensors, &work, 1, values, &profiler->tried, error);
    if (status != STATUS_DEVICE)
        profiler_leave(profiler);
    return status;
}

/* Some refusals show only when counting begins. With all tensors, as the proofs of the roofs will
 * ask for; a device that lacks a counter of theirs still has the others. */
static enum status preflight(struct profiler *profiler, struct error *error)
{
    TRY(count_trial(profiler, QUANTITY_ALL_TENSORS, error));
    return profiler->tried.code == COUNTED_YES ? STATUS_OK : count_trial(profiler, 0, error);
}

static enum status try_opened(struct profiler *profiler, struct error *error)
{
    const struct profiler_trial *trial = &profiler->trial;
    enum status status = trial->reserve ? trial->reserve(trial->argument, error) : STATUS_OK;
    if (status == STATUS_OK)
        return preflight(profiler, error);
    if (status == STATUS_DEVICE)
        return status;
    counters_close(profiler->counters);
    profiler->counters = NULL;
    outcome_set(&profiler->tried, COUNTED_REFUSED, "%.400s", error->text);
    return STATUS_OK;
}

enum status profiler_try(struct profiler *profiler, int device, CUcontext context,
                         struct outcome *outcome, struct error *error)
{
    enum status status = STATUS_OK;
    if (profiler->tried.code == OUTCOME_MISSING) {
        tracer_detach(profiler->tracer);
        profiler->counters = counters_open(device, context, &profiler->tried);
        if (profiler->counters)
            status = try_opened(profiler, error);
    }
    *outcome = profiler->tried;
    return status;
}

const struct outcome *profiler_counters(const struct profiler *profiler)
{
    return &profiler->tried;
}

bool profiler_has(const struct profiler *profiler, enum quantity quantity)
{
    return counters_have(profiler->counters, quantity);
}

enum status profiler_count(struct profiler *profiler, unsigned tensors,
                           const struct profiled_work *works, size_t count,
                           double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                           struct error *error)
{
    tracer_detach(profiler->tracer);
    return counters_collect(profiler->counters, tensors, works, count, values, outcome, error);
}

enum status profiler_count_launches(struct profiler *profiler, unsigned tensors,
                                    const struct profiled_work *work, size_t launches, size_t most,
                                    double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                                    struct error *error)
{
    tracer_detach(profiler->tracer);
    return counters_collect_launches(profiler->counters, tensors, work, launches, most, values,
                                     outcome, error);
}

/* ---- known kernels ---- */

/* A device too full for the known kernels is no reason to lose the trace. Fails only with
 * STATUS_DEVICE. */
static enum status known_time(struct profiler *profiler, double times[PROFILER_TIMES], bool *known,
                              struct error *error)
{
    enum status status = profiler->judge.measure(profiler->judge.argument, times, error);
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

/* The tracer has been attached since known kernels took `before`. What is beyond the bound once may
 * be noise. Fails only with STATUS_DEVICE. */
static enum status judge(struct profiler *profiler, const double before[PROFILER_TIMES],
                         struct error *error)
{
    const double most = 1.05; /* gaps between launches shift by 3 % for no reason that is known */
    const int attempts = 3;
    double after[PROFILER_TIMES];
    bool known = true;
    profiler->ratio = NAN;
    for (int i = 0; i < attempts && known && !(profiler->ratio <= most); ++i) {
        TRY(known_time(profiler, after, &known, error));
        profiler->ratio = known ? worst_ratio(before, after) : NAN;
    }
    profiler->judged = true;
    profiler->tracer_leaves = !(profiler->ratio <= most);
    if (profiler->tracer_leaves)
        tracer_detach(profiler->tracer);
    return STATUS_OK;
}

/* ---- trace ---- */

static enum status run_tracer(struct profiler *profiler, const struct profiled_work *work,
                              bool stays, struct outcome *outcome, struct error *error)
{
    enum status status = tracer_run(profiler->tracer, work, stays, outcome, error);
    if (status && status != STATUS_DEVICE)
        tracer_detach(profiler->tracer);
    return status;
}

/* The first one that may stay decides whether it does. */
static enum status trace_and_judge(struct profiler *profiler, const struct profiled_work *work,
                                   struct outcome *outcome, struct error *error)
{
    double before[PROFILER_TIMES];
    bool known;
    TRY(known_time(profiler, before, &known, error));
    TRY(run_tracer(profiler, work, known, outcome, error));
    return known && outcome->code == TRACED_WELL ? judge(profiler, before, error) : STATUS_OK;
}

static enum status trace(struct profiler *profiler, const struct profiled_work *work,
                         struct outcome *outcome, struct error *error)
{
    if (profiler->judge.measure && !profiler->judged && !profiler->tracer_leaves)
        return trace_and_judge(profiler, work, outcome, error);
    return run_tracer(profiler, work, !profiler->tracer_leaves, outcome, error);
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
    TRY(trace(profiler, work, outcome, error));
    if (outcome->code != TRACED_WELL && tracer_is_attached(profiler->tracer)) {
        tracer_detach(profiler->tracer); /* what stayed may have been in the way */
        profiler->tracer_leaves = true;
        TRY(run_tracer(profiler, work, false, outcome, error));
    }
    profiler->trace_refused = outcome->code == TRACED_REFUSED;
    return STATUS_OK;
}

struct trace profiler_last_trace(const struct profiler *profiler)
{
    return *tracer_last(profiler->tracer);
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
    profiler->tried.code = OUTCOME_MISSING;
    profiler->ratio = NAN;
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
    counters_close(profiler->counters);
    free(profiler);
}
