#include "ranks/forecast.h"

#include <math.h>
#include <stdlib.h>

/* Modelled durations of 2^-64 to 2^63 s, a factor of two in each class; the last one has no model. */
enum { CLASSES = 128, LOWEST = -64, UNMODELLED = CLASSES, CLASS_COUNT };

static const double addition = 1.5; /* on what others took */
/* The slow device that is assumed. */
static const double assumed_start = 5, assumed_flops = 1e10, assumed_bytes = 1e9, assumed_work = 2;
static const double refusal = 1; /* s, of what cannot exist */

/* Of one workload. */
struct experience {
    double longest[CLASS_COUNT]; /* s, by class; 0: none was measured */
    double slowness;             /* the longest time over that of the device that is assumed */
};

struct forecast {
    struct measure_settings measure;
    double timeout;
    size_t workload_count;
    struct experience *experience; /* by workload */
};

double forecast_modelled(struct cost cost)
{
    return fmax(cost.flops / 1e13, cost.bytes / 1e12);
}

static size_t count_workloads(void)
{
    size_t count = 0;
    while (workloads[count])
        ++count;
    return count;
}

struct forecast *forecast_create(const struct measure_settings *measure, double timeout)
{
    struct forecast *created = calloc(1, sizeof *created);
    if (!created)
        return NULL;
    created->measure = *measure;
    created->timeout = timeout;
    created->workload_count = count_workloads();
    created->experience = calloc(created->workload_count + 1, sizeof *created->experience);
    if (created->experience)
        return created;
    forecast_destroy(created);
    return NULL;
}

void forecast_destroy(struct forecast *forecast)
{
    if (forecast)
        free(forecast->experience);
    free(forecast);
}

static int class_of(double modelled)
{
    if (isnan(modelled))
        return UNMODELLED;
    double place = modelled > 0 ? floor(log2(modelled)) - LOWEST : 0;
    return (int)fmin(fmax(place, 0), CLASSES - 1);
}

/* s, on the slow device. */
static double assumed(const struct forecast *forecast, struct cost cost)
{
    const struct measure_settings *measure = &forecast->measure;
    double once = cost.flops / assumed_flops + cost.bytes / assumed_bytes;
    double adaptive = measure->iterations > 0 ? 0 : measure->max_time;
    double seconds =
        assumed_start + assumed_work * ((measure->warmup + measure->iterations) * once + adaptive);
    return isnan(seconds) ? INFINITY : seconds;
}

/* NULL of a workload that is in no table. */
static struct experience *experience_of(const struct forecast *forecast,
                                        const struct workload *workload)
{
    for (size_t i = 0; i < forecast->workload_count; ++i)
        if (workloads[i] == workload)
            return &forecast->experience[i];
    return NULL;
}

void forecast_learn(struct forecast *forecast, const struct workload *workload, struct cost cost,
                    double seconds)
{
    struct experience *experience = experience_of(forecast, workload);
    int class = class_of(forecast_modelled(cost));
    if (!experience)
        return;
    experience->longest[class] = fmax(experience->longest[class], seconds);
    experience->slowness = fmax(experience->slowness, seconds / assumed(forecast, cost));
}

/* s; INFINITY: none like it was measured. */
static double from_others(const double *longest, int class)
{
    double larger = INFINITY, smaller = INFINITY;
    if (longest[class] > 0 || class == UNMODELLED)
        return longest[class] > 0 ? longest[class] : INFINITY;
    for (int i = class + 1; i < CLASSES && isinf(larger); ++i)
        if (longest[i] > 0)
            larger = longest[i];
    for (int i = class - 1; i >= 0 && isinf(smaller); --i)
        if (longest[i] > 0)
            smaller = ldexp(longest[i], class - i);
    return fmin(larger, smaller);
}

struct estimate forecast_estimate(const struct forecast *forecast, const struct workload *workload,
                                  struct cost cost)
{
    const struct experience *experience = experience_of(forecast, workload);
    int class = class_of(forecast_modelled(cost));
    double others = experience ? addition * from_others(experience->longest, class) : INFINITY;
    double seconds = others;
    if (forecast_modelled(cost) == 0.0)
        seconds = refusal;
    else if (!experience || experience->longest[class] == 0.0)
        seconds =
            fmin(others, assumed(forecast, cost) * fmax(1, experience ? experience->slowness : 1));
    return (struct estimate){.seconds = fmin(seconds, forecast->timeout),
                             .measured = !isinf(others)};
}
