#include "worker/cuda/roofs/roofs_samples.h"

#include <math.h>

#include "base/clock.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/cuda/gpu/timer.h"
#include "worker/cuda/roofs/roofs_run.h"

static const double settling = 0.005; /* s of load, after which an idle device has its clock */

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

/* After a load of the tensor units the clock is low for a while. That is no part of another burst, nor of a time,
 * which goes by the clock. */
static bool is_tensor(int kind)
{
    return roof_kinds[kind].measure == ROOF_COMPUTE && roof_kinds[kind].unit == UNIT_TENSOR;
}

static void rest(const struct roofs *roofs, int kind, double start)
{
    const bool waits = is_tensor(kind) || roof_kinds[kind].measure == ROOF_TIME;
    while (waits && !(start > 0.0) && clock_epoch() + settling < roofs->rests_until)
        ;
}

/* A device that was at work right before has its clock. A burst of the tensor units always begins alike. */
static double warming(const struct roofs *roofs, int kind)
{
    const double pause = 5e-3; /* s */
    const bool warm = clock_epoch() - roofs->busy_until < pause;
    return warm && !is_tensor(kind) ? 0.0 : settling;
}

/* Runs until the clock has settled under this load; or, with a common start, until then. each: how
 * long the host is busy with one run. since: when the load began, s since the epoch. */
static enum status warm_up(struct roofs *roofs, const struct winner *winner, int kind, double start,
                           double *each, double *since, struct error *error)
{
    const double margin = 0.5e-3; /* s */
    rest(roofs, kind, start);
    double end = start > 0.0 ? start - margin : clock_epoch() + warming(roofs, kind);
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

enum status samples_burst(struct roofs *roofs, struct winner *winner, int kind, double start,
                          struct roof *roof, struct error *error)
{
    const double cooling = 0.06; /* s */
    double seconds[SAMPLES_MAX], each, since;
    TRY(warm_up(roofs, winner, kind, start, &each, &since, error));
    TRY(wait_until(start, error));
    int count = (int)fmin(fmax(ceil(ROOF_WINDOW / each), SAMPLES_LEAST), SAMPLES_MAX);
    TRY(samples_take(roofs, winner, count, seconds, roof, error));
    roof->power = nvml_power(roofs->gpu->nvml, since);
    roof_set_samples(roof, run_work(&winner->method), seconds, count);
    winner->clock = roof->sm_clock;
    roofs->busy_until = clock_epoch();
    if (is_tensor(kind))
        roofs->rests_until = roofs->busy_until + cooling;
    return STATUS_OK;
}

/* ---- sustained ---- */

static const double window_time = 0.1; /* s */
/* The driver keeps the power limit on the average of about a second: it lets a load draw some per cent more, and
 * then less for some tenths of a second (docs/measurements.md, "Windows of a sustained load"). */
enum { WINDOWS_LEAST = 3, WINDOWS_OF_AVERAGE = 10, WINDOWS_MOST = 20 };

struct window {
    double begin;         /* s since the epoch */
    double seconds, work; /* of the device */
    double clock;         /* s-1, of the multiprocessors */
    double power;         /* W; NaN: not known */
};

/* All runs back to back, between two events. each: s, one run, about. */
static enum status window_run(struct roofs *roofs, const struct winner *winner, double each,
                              struct window *window, struct error *error)
{
    const int runs = (int)fmax(1.0, ceil(window_time / each));
    struct timer *timer = roofs->gpu->timer;
    window->begin = clock_epoch();
    TRY(timer_stamp(timer, TIMER_BEGIN, error));
    TRY(CUDA(cudaEventRecord(timer->events[0], roofs->gpu->stream)));
    for (int i = 0; i < runs; ++i)
        TRY(winner->family->run(roofs, &winner->method, error));
    TRY(CUDA(cudaEventRecord(timer->events[1], roofs->gpu->stream)));
    TRY(timer_stamp(timer, TIMER_END, error));
    TRY(CUDA(cudaStreamSynchronize(roofs->gpu->stream)));
    TRY(run_elapsed(roofs, 0, &window->seconds, error));
    window->work = run_work(&winner->method) * runs;
    window->power = nvml_power(roofs->gpu->nvml, window->begin);
    return timer_clock(timer, &window->clock, error);
}

/* What some windows show together. */
struct view {
    double rate, clock, power; /* s-1, s-1, W; power NaN: not known */
};

static struct view view_of(const struct window *windows, int count)
{
    double work = 0.0, seconds = 0.0, cycles = 0.0, joules = 0.0, sensed = 0.0;
    for (int i = 0; i < count; ++i) {
        const struct window *window = &windows[i];
        work += window->work;
        seconds += window->seconds;
        cycles += window->clock * window->seconds;
        if (isnan(window->power)) /* the sensor is slower than this window */
            continue;
        joules += window->power * window->seconds;
        sensed += window->seconds;
    }
    return (struct view){work / seconds, cycles / seconds, sensed > 0.0 ? joules / sensed : NAN};
}

static const double under = 0.98, over = 1.002; /* of the power limit: what it is kept to */
static const double same = 0.01;                /* clocks: their steps are 15 MHz, about 1 % */

/* Nothing limits it: the clock is still the burst's, with no more power than is allowed. The burst was the window
 * before the first. Where power is not known yet, another window may tell. */
static bool is_free(const struct roofs *roofs, const struct winner *winner,
                    const struct window *last, int count)
{
    const int few = count > 1 ? 2 : 1;
    const double power = view_of(last - few, few).power;
    for (int i = 1; i <= few; ++i)
        if (!(fabs(last[-i].clock - winner->clock) <= same * winner->clock))
            return false;
    return isnan(power) ? count >= WINDOWS_LEAST : !(power > over * roofs->gpu->power_limit);
}

/* Something else than power holds the clock. */
static bool is_still(const struct roofs *roofs, const struct window *windows, int count)
{
    double lowest = windows[0].clock, highest = lowest;
    for (int i = 1; i < count; ++i) {
        lowest = fmin(lowest, windows[i].clock);
        highest = fmax(highest, windows[i].clock);
    }
    return highest <= (1.0 + 2.0 * same) * lowest &&
           !(view_of(windows, count).power > over * roofs->gpu->power_limit);
}

/* The most windows up to the last in which the limit was kept on the average; 0: there are none. The clock comes
 * down in the first one. */
static int limited_windows(const struct roofs *roofs, const struct window *last, int count)
{
    const double limit = roofs->gpu->power_limit;
    for (int many = count - 1; many >= WINDOWS_LEAST - 1; --many) {
        const double power = view_of(last - many, many).power;
        if (power >= under * limit && power <= over * limit)
            return many;
    }
    return 0;
}

/* How many windows up to the last say what is sustained; 0: the device has not settled. */
static int windows_settled(const struct roofs *roofs, const struct winner *winner,
                           const struct window *windows, int count)
{
    const struct window *last = windows + count;
    if (is_free(roofs, winner, last, count))
        return count > 1 ? 2 : 1;
    const int limited = limited_windows(roofs, last, count);
    if (limited > 0)
        return limited;
    const bool still = count >= WINDOWS_OF_AVERAGE &&
                       is_still(roofs, last - WINDOWS_OF_AVERAGE, WINDOWS_OF_AVERAGE);
    return still ? WINDOWS_OF_AVERAGE : 0;
}

static void sustained_set(const struct view *view, bool settled, struct roof *roof)
{
    roof->sustained = view->rate;
    roof->sustained_clock = view->clock;
    roof->sustained_power = view->power;
    roof->settling_time = clock_epoch() - roof->start_time;
    roof->settled = settled;
}

enum status samples_sustain(struct roofs *roofs, const struct winner *winner, struct roof *roof,
                            struct error *error)
{
    const double each = run_work(&winner->method) / winner->way.rate;
    const double cooling = 0.1; /* s */
    struct window windows[WINDOWS_MOST];
    int count = 0, settled = 0;
    if (isnan(roof->start_time)) /* there was no burst */
        roof->start_time = clock_epoch();
    while (count < WINDOWS_MOST && settled == 0) {
        TRY(window_run(roofs, winner, each, &windows[count++], error));
        settled = windows_settled(roofs, winner, windows, count);
    }
    const int seen = settled > 0 ? settled : WINDOWS_OF_AVERAGE;
    const struct view view = view_of(windows + count - seen, seen);
    sustained_set(&view, settled > 0, roof);
    roofs->busy_until = clock_epoch();
    roofs->rests_until = roofs->busy_until + cooling;
    return STATUS_OK;
}
