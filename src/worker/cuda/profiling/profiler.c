#include "worker/cuda/profiling/profiler.h"

#include <math.h>
#include <stdlib.h>

#include "model/roof_kind.h"
#include "worker/cuda/profiling/counters.h"

struct profiler {
    struct profiler_host host;
    struct outcome tried;      /* result of profiler_try */
    struct counters *counters; /* owned; NULL before profiler_try, and without counters */
    struct tracer *tracer;     /* owned */
    bool tracer_leaves; /* detach after each trace: the tracer disturbs times, or failed to stay */
    struct outcome traced; /* result of the last trace */
    bool judged;           /* `ratio` is known */
    double ratio;          /* as profiler_ratio */
};

/* ---- attaching ---- */

double profiler_ratio(const struct profiler *profiler)
{
    return tracer_is_attached(profiler->tracer) ? profiler->ratio : NAN;
}

void profiler_detach_counters(struct profiler *profiler)
{
    if (profiler->counters)
        counters_detach(profiler->counters);
}

void profiler_detach(struct profiler *profiler)
{
    profiler_detach_counters(profiler);
    tracer_detach(profiler->tracer);
}

/* ---- counters ---- */

static enum status nothing(void *argument, struct error *error)
{
    (void)argument, (void)error;
    return STATUS_OK;
}

/* The proofs of all roofs fit into the room of the trial, and need not attach CUPTI again. */
static enum status count_trial(struct profiler *profiler, unsigned tensors, struct error *error)
{
    const struct profiled_work work = {nothing, profiler->host.run, profiler->host.argument, NULL};
    double values[1][QUANTITY_COUNT];
    return profiler_count(profiler, tensors, &work, 1, NULL, ROOF_KINDS, values, &profiler->tried,
                          error);
}

/* Counts a trial, because some refusals only show then. The trial counts all tensors, as the proofs
 * of the roofs will. If one of these counters is missing, a second trial leaves out tensors. */
static enum status try_opened(struct profiler *profiler, struct error *error)
{
    enum status status = profiler->host.reserve(profiler->host.argument, error);
    if (status == STATUS_OK) {
        TRY(count_trial(profiler, QUANTITY_ALL_TENSORS, error));
        if (profiler->tried.code == COUNTED_YES)
            return STATUS_OK;
        profiler_detach_counters(profiler); /* attached counters count earlier tensors, too */
        return count_trial(profiler, 0, error);
    }
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
                           const struct profiled_work *works, size_t count, const size_t *launches,
                           size_t room, double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                           struct error *error)
{
    tracer_detach(profiler->tracer);
    return counters_collect(profiler->counters, tensors, works, count, launches, room, values,
                            outcome, error);
}

/* ---- known kernels ---- */

/* *known is false if known kernels failed, but did not lose the device: the trace goes on. */
static enum status known_time(struct profiler *profiler, double times[PROFILER_TIMES], bool *known,
                              struct error *error)
{
    enum status status = profiler->host.measure(profiler->host.argument, times, error);
    *known = status == STATUS_OK;
    return status == STATUS_DEVICE ? status : STATUS_OK;
}

/* Decides whether the tracer stays attached. `before`: times of known kernels without it. One high
 * ratio may be noise, so there are three attempts. Returns STATUS_OK or STATUS_DEVICE. */
static enum status judge(struct profiler *profiler, const double before[PROFILER_TIMES],
                         struct error *error)
{
    const double most = 1.05; /* gaps between launches shift by 3 % without a known cause */
    const int attempts = 3;
    double after[PROFILER_TIMES];
    bool known = true;
    profiler->ratio = NAN;
    for (int i = 0; i < attempts && known && !(profiler->ratio <= most); ++i) {
        TRY(known_time(profiler, after, &known, error));
        profiler->ratio = known ? 0.0 : NAN;
        for (int j = 0; j < PROFILER_TIMES && known; ++j)
            if (!(after[j] / before[j] <= profiler->ratio))
                profiler->ratio = after[j] / before[j];
    }
    profiler->judged = true;
    profiler->tracer_leaves = !(profiler->ratio <= most);
    if (profiler->tracer_leaves)
        tracer_detach(profiler->tracer);
    return STATUS_OK;
}

/* ---- trace ---- */

static enum status run_tracer(struct profiler *profiler, const struct profiled_work *work,
                              bool stays, struct error *error)
{
    enum status status = tracer_run(profiler->tracer, work, stays, &profiler->traced, error);
    if (status && status != STATUS_DEVICE)
        tracer_detach(profiler->tracer);
    return status;
}

/* Until it is known whether the tracer stays, times known kernels before each trace and after each
 * good one. */
static enum status trace(struct profiler *profiler, const struct profiled_work *work,
                         struct error *error)
{
    double before[PROFILER_TIMES];
    bool known;
    if (profiler->judged || profiler->tracer_leaves)
        return run_tracer(profiler, work, !profiler->tracer_leaves, error);
    TRY(known_time(profiler, before, &known, error));
    TRY(run_tracer(profiler, work, known, error));
    return known && profiler->traced.code == TRACED_WELL ? judge(profiler, before, error)
                                                         : STATUS_OK;
}

enum status profiler_trace(struct profiler *profiler, const struct profiled_work *work,
                           struct outcome *outcome, struct error *error)
{
    enum status status = STATUS_OK;
    profiler_detach_counters(profiler);
    if (profiler->traced.code != TRACED_REFUSED) {
        status = trace(profiler, work, error);
        if (status == STATUS_OK && profiler->traced.code != TRACED_WELL &&
            tracer_is_attached(profiler->tracer)) {
            tracer_detach(profiler->tracer); /* the attached tracer may have caused the failure */
            profiler->tracer_leaves = true;
            status = run_tracer(profiler, work, false, error);
        }
    }
    *outcome = profiler->traced;
    return status;
}

const struct trace *profiler_last_trace(const struct profiler *profiler)
{
    return tracer_last(profiler->tracer);
}

/* ---- life ---- */

struct profiler *profiler_open(const struct profiler_host *host)
{
    struct profiler *profiler = calloc(1, sizeof *profiler);
    if (!profiler)
        return NULL;
    profiler->host = *host;
    profiler->tried.code = profiler->traced.code = OUTCOME_MISSING;
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
