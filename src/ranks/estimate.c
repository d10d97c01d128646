#include "ranks/estimate.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "ranks/resume.h"

/* Classes of modelled duration by powers of two, 2^-64 to 2^63 s; the last class has no model. */
enum { CLASSES = 128, LOWEST = -64, UNMODELLED = CLASSES, CLASS_COUNT };

static const double safety_factor = 1.5; /* factor on measured times */
/* The assumed slow device: start, s; FLOP rate, s-1; bandwidth, byte s-1; factor on iterations. */
static const double assumed_start = 5, assumed_flops = 1e10, assumed_bytes = 1e9, assumed_work = 2;
/* Shares of the highest vector peak, and of the highest memory peak, that slow rows reach, such as
 * convolutions by plain loops. */
static const double slow_compute = 2e-3, slow_memory = 2e-2;
static const double skip_time = 1; /* s; estimate of a configuration that cannot exist */

struct history {
    double longest[CLASS_COUNT]; /* s, by class; 0: none */
    double slowness;             /* largest ratio of measured to assumed time */
};

struct estimator {
    struct measure_settings measure;
    double timeout;
    double flops, bytes; /* s-1, byte s-1: the rates of slow rows */
    size_t workload_count;
    struct history *history; /* by workload */
};

double estimate_modelled(struct cost cost)
{
    return fmax(cost.flops / 1e13, cost.bytes / 1e12);
}

bool estimate_is_usable(int64_t status, int64_t attempts)
{
    return status == RECORD_MEASURED && attempts <= 1;
}

struct estimator *estimator_create(const struct measure_settings *measure, double timeout)
{
    struct estimator *created = calloc(1, sizeof *created);
    if (!created)
        return NULL;
    created->measure = *measure;
    created->timeout = timeout;
    created->flops = created->bytes = NAN;
    while (workloads[created->workload_count])
        ++created->workload_count;
    created->history = calloc(created->workload_count + 1, sizeof *created->history);
    if (created->history)
        return created;
    free(created);
    return NULL;
}

void estimator_destroy(struct estimator *estimator)
{
    if (estimator)
        free(estimator->history);
    free(estimator);
}

void estimator_set_peaks(struct estimator *estimator, const struct device *device)
{
    double flops = assumed_flops;
    for (int i = 0; i < PRECISION_COUNT; ++i)
        flops = fmax(flops, slow_compute * device->peak_vector[i]);
    double bytes = fmax(assumed_bytes, slow_memory * device->peak_bandwidth[LEVEL_DRAM]);
    estimator->flops = fmin(flops, estimator->flops); /* fmin ignores NaN */
    estimator->bytes = fmin(bytes, estimator->bytes);
}

static int class_of(double modelled)
{
    if (isnan(modelled))
        return UNMODELLED;
    double place = modelled > 0 ? floor(log2(modelled)) - LOWEST : 0;
    return (int)fmin(fmax(place, 0), CLASSES - 1);
}

static double assumed_time(const struct estimator *estimator, struct cost cost)
{
    const struct measure_settings *measure = &estimator->measure;
    double once = cost.flops / fmax(assumed_flops, estimator->flops) +
                  cost.bytes / fmax(assumed_bytes, estimator->bytes);
    double adaptive = measure->iterations > 0 ? 0 : measure->max_time;
    double timed = (measure->warmup + measure->iterations) * once + adaptive;
    double seconds = assumed_start + assumed_work * measure->repeat * timed;
    return isnan(seconds) ? INFINITY : seconds;
}

static struct history *history_of(const struct estimator *estimator, const struct plan_item *item)
{
    for (size_t i = 0; i < estimator->workload_count; ++i)
        if (workloads[i] == item->config.workload)
            return &estimator->history[i];
    return NULL;
}

void estimator_add(struct estimator *estimator, const struct plan_item *item, double seconds)
{
    struct history *history = history_of(estimator, item);
    if (!history)
        return;
    double *longest = &history->longest[class_of(estimate_modelled(item->cost))];
    *longest = fmax(*longest, seconds);
    history->slowness = fmax(history->slowness, seconds / assumed_time(estimator, item->cost));
}

/* s; longest row of the class; for a class without rows the bound by its measured neighbours.
 * INFINITY: no measured rows. */
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

struct estimate estimator_estimate(const struct estimator *estimator, const struct plan_item *item)
{
    const struct history *history = history_of(estimator, item);
    const double modelled = estimate_modelled(item->cost);
    int class = class_of(modelled);
    double others = history ? safety_factor * from_others(history->longest, class) : INFINITY;
    double seconds = others;
    if (modelled == 0.0)
        seconds = skip_time;
    else if (!history || history->longest[class] == 0.0)
        seconds = fmin(others, assumed_time(estimator, item->cost) *
                                   fmax(1, history ? history->slowness : 1));
    return (struct estimate){.seconds = fmin(seconds, estimator->timeout),
                             .measured = !isinf(others)};
}

/* ---- a whole plan ---- */

enum status estimate_make(const struct manifest *manifest, const struct plan *plan,
                          const struct results *earlier, struct estimate_total *total,
                          struct error *error)
{
    struct estimator *estimator = estimator_create(&manifest->measure, manifest->sweep.timeout);
    const size_t rounds = (size_t)manifest->sweep.rounds;
    size_t *done = calloc(plan->count + 1, sizeof *done); /* rounds of each item */
    size_t *items = earlier ? resume_items(plan, earlier) : NULL;
    bool made = estimator && done && (items || !earlier);
    if (made)
        *total = (struct estimate_total){.rounds = (int)rounds};
    for (size_t i = 0; made && earlier && i < earlier->row_count; ++i) {
        const struct row *row = &earlier->rows[i];
        if (items[i] == RESUME_NONE)
            continue;
        done[items[i]] = rounds - resume_rounds(row, (int)rounds);
        if (estimate_is_usable(row->status, row->attempts) && row->wall_time > 0)
            estimator_add(estimator, &plan->items[items[i]], row->wall_time);
    }
    for (size_t i = 0; made && i < plan->count; ++i) {
        const double missing = (double)(rounds - done[i]);
        if (missing == 0)
            continue;
        struct estimate estimate = estimator_estimate(estimator, &plan->items[i]);
        ++total->left;
        total->judged += estimate.measured;
        *(estimate.measured ? &total->seconds : &total->at_most) += missing * estimate.seconds;
    }
    estimator_destroy(estimator);
    free(items);
    free(done);
    return made ? STATUS_OK : error_set(error, STATUS_SYSTEM, "no memory for the estimate");
}

/* "35 s", "12 min", "3.4 h" */
enum { TIME_TEXT = 32 };
static const char *time_format(double seconds, char text[TIME_TEXT])
{
    if (seconds < 120)
        snprintf(text, TIME_TEXT, "%.0f s", seconds);
    else if (seconds < 7200)
        snprintf(text, TIME_TEXT, "%.0f min", seconds / 60);
    else
        snprintf(text, TIME_TEXT, "%.1f h", seconds / 3600);
    return text;
}

void estimate_encode(const struct estimate_total *total, json_t *object)
{
    json_object_set_new(object, "estimate",
                        json_pack("{s:I, s:I, s:f, s:f}", "left", (json_int_t)total->left, "judged",
                                  (json_int_t)total->judged, "seconds", total->seconds, "at_most",
                                  total->at_most));
}

void estimate_print(const struct estimate_total *total, FILE *stream)
{
    char text[TIME_TEXT], rounds[32] = "";
    if (total->rounds > 1)
        snprintf(rounds, sizeof rounds, " in %d rounds", total->rounds);
    size_t assumed = total->left - total->judged;
    if (total->judged > 0)
        utf8_print(stream,
                   "time on one device, judged by the rows that are there: at most %s for %zu "
                   "configurations%s\n",
                   time_format(total->seconds, text), total->judged, rounds);
    if (assumed > 0)
        utf8_print(stream,
                   "time on one slow device: at most %s for %zu configurations%s; a fast GPU "
                   "takes less than 1 s for most\n",
                   time_format(total->at_most, text), assumed, rounds);
    if (total->left > 0)
        utf8_print(stream,
                   "several devices share this time; measuring the roofs is not included\n");
}
