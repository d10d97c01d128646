#include "worker/cuda/roofs/roofs_samples.h"

#include <math.h>

#include "base/clock.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/cuda/gpu/timer.h"
#include "worker/cuda/roofs/roofs_run.h"

static const double settling = 0.010; /* s of load, after which an idle device has its clock */

/* ---- the burst ---- */

/* Of compute the burst is wanted, so the device idles until shortly before the common start: a longer
 * load would bring the clock down. `each`: what one run takes. */
static void idle_until_due(int kind, double start, double each)
{
    while (roof_kinds[kind].measure == ROOF_COMPUTE && clock_epoch() + each + settling < start)
        ;
}

static enum status warm_run(struct roofs *roofs, const struct winner *winner, double *each,
                            struct error *error)
{
    double begin = clock_monotonic(), seconds;
    TRY(run_time(roofs, winner, &seconds, error));
    *each = clock_monotonic() - begin;
    return STATUS_OK;
}

/* Runs until the clock has settled under this load; or, with a common start, until then. each: how
 * long the host is busy with one run. since: when the load began, s since the epoch. */
static enum status warm_up(struct roofs *roofs, const struct winner *winner, int kind, double start,
                           double *each, double *since, struct error *error)
{
    const double margin = 0.5e-3; /* s */
    double end = start > 0.0 ? start - margin : clock_epoch() + settling;
    TRY(warm_run(roofs, winner, each, error));
    idle_until_due(kind, start, *each);
    *since = clock_epoch();
    while (clock_epoch() + (start > 0.0 ? *each : 0.0) < end)
        TRY(warm_run(roofs, winner, each, error));
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
            TRY(winner->family->time(roofs, &winner->method, &seconds[i], error));
        else
            TRY(run_enqueue(roofs, winner, 2 * i, error));
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
    TRY(timer_stamp(roofs->gpu->timer, TIMER_BEGIN, error));
    roof->start_time = clock_epoch();
    TRY(samples_enqueue(roofs, winner, count, seconds, error));
    TRY(timer_stamp(roofs->gpu->timer, TIMER_END, error));
    nvml_sample(roofs->gpu->nvml, roofs->gpu->timer->events[2 * count - 1], &seen);
    TRY(CUDA(cudaStreamSynchronize(roofs->gpu->stream)));
    for (int i = 0; i < count && !winner->family->time; ++i)
        TRY(run_elapsed(roofs, 2 * i, &seconds[i], error));
    return timer_clock(roofs->gpu->timer, &roof->sm_clock, error);
}

enum status samples_burst(struct roofs *roofs, const struct winner *winner, int kind, double start,
                          struct roof *roof, struct error *error)
{
    double seconds[SAMPLES_MAX], each, since;
    TRY(warm_up(roofs, winner, kind, start, &each, &since, error));
    TRY(wait_until(start, error));
    int count = (int)fmin(fmax(ceil(ROOF_WINDOW / each), SAMPLES_LEAST), SAMPLES_MAX);
    TRY(samples_take(roofs, winner, count, seconds, roof, error));
    roof->power = nvml_power(roofs->gpu->nvml, since);
    roof_set_samples(roof, run_work(&winner->method), seconds, count);
    return STATUS_OK;
}

/* ---- sustained ---- */

static const double window_time = 0.2, longest = 2.0; /* s */

struct window {
    double begin;       /* s since the epoch */
    double clock, rate; /* s-1: of the multiprocessors; of the work */
    double power;       /* W; NaN: not known */
};

/* All runs back to back, between two events. each: s, one run, about. */
static enum status window_run(struct roofs *roofs, const struct winner *winner, double each,
                              struct window *window, struct error *error)
{
    const int runs = (int)fmax(1.0, ceil(window_time / each));
    struct timer *timer = roofs->gpu->timer;
    double seconds;
    window->begin = clock_epoch();
    TRY(timer_stamp(timer, TIMER_BEGIN, error));
    TRY(CUDA(cudaEventRecord(timer->events[0], roofs->gpu->stream)));
    for (int i = 0; i < runs; ++i)
        TRY(winner->family->run(roofs, &winner->method, error));
    TRY(CUDA(cudaEventRecord(timer->events[1], roofs->gpu->stream)));
    TRY(timer_stamp(timer, TIMER_END, error));
    TRY(CUDA(cudaStreamSynchronize(roofs->gpu->stream)));
    TRY(run_elapsed(roofs, 0, &seconds, error));
    window->rate = run_work(&winner->method) * runs / seconds;
    window->power = nvml_power(roofs->gpu->nvml, window->begin);
    return timer_clock(timer, &window->clock, error);
}

/* Steps of the clock are 15 MHz, about 1 %; a mean over a window lies in between. Some devices hold a
 * clock for a while with more power than their limit, and lower it then (docs/measurements.md, "Burst and
 * sustained"). */
static bool windows_settled(const struct roofs *roofs, const struct window *before,
                            const struct window *now)
{
    const double same = 0.005, over = 1.05;
    bool too_much = now->power > over * roofs->gpu->power_limit; /* not so for a NaN */
    return fabs(now->clock - before->clock) <= same * before->clock && !too_much;
}

enum status samples_sustain(struct roofs *roofs, const struct winner *winner, struct roof *roof,
                            struct error *error)
{
    const double each = run_work(&winner->method) / winner->way.rate;
    struct window before, now;
    if (isnan(roof->start_time)) /* there was no burst */
        roof->start_time = clock_epoch();
    TRY(window_run(roofs, winner, each, &now, error));
    do {
        before = now;
        TRY(window_run(roofs, winner, each, &now, error));
    } while (!windows_settled(roofs, &before, &now) &&
             now.begin - roof->start_time < longest - window_time);
    roof->sustained = now.rate;
    roof->sustained_clock = now.clock;
    roof->sustained_power = now.power;
    roof->settling_time = clock_epoch() - roof->start_time;
    roof->settled = windows_settled(roofs, &before, &now);
    return STATUS_OK;
}
