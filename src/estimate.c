#include "estimate.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "ranks/earlier_rows.h"
#include "ranks/forecast.h"

/* While the earlier rows are looked at. */
struct experience_of_plan {
    const struct plan *plan;
    struct forecast *forecast;
    bool *done; /* by item */
};

static void learn(void *context, const struct row *row, size_t item)
{
    const struct experience_of_plan *experience = context;
    const struct plan_item *measured = &experience->plan->items[item];
    experience->done[item] = true;
    if (row->status == RECORD_MEASURED && row->attempts <= 1 && row->wall_time > 0)
        forecast_learn(experience->forecast, measured->config.workload, measured->cost,
                       row->wall_time);
}

static struct estimate_total add_up(const struct experience_of_plan *experience)
{
    struct estimate_total total = {0};
    for (size_t i = 0; i < experience->plan->count; ++i) {
        const struct plan_item *item = &experience->plan->items[i];
        if (experience->done[i])
            continue;
        struct estimate estimate =
            forecast_estimate(experience->forecast, item->config.workload, item->cost);
        ++total.left;
        total.judged += estimate.measured;
        *(estimate.measured ? &total.seconds : &total.at_most) += estimate.seconds;
    }
    return total;
}

enum status estimate_make(const struct manifest *manifest, const struct plan *plan,
                          const struct results *earlier, struct estimate_total *total,
                          struct error *error)
{
    struct experience_of_plan experience = {
        .plan = plan,
        .forecast = forecast_create(&manifest->measure, manifest->sweep.timeout),
        .done = calloc(plan->count + 1, sizeof(bool)),
    };
    bool made = experience.forecast && experience.done &&
                (!earlier || earlier_rows_each(plan, earlier, learn, &experience));
    if (made)
        *total = add_up(&experience);
    forecast_destroy(experience.forecast);
    free(experience.done);
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

void estimate_print(const struct estimate_total *total, FILE *stream)
{
    char text[TIME_TEXT];
    size_t assumed = total->left - total->judged;
    if (total->judged > 0)
        utf8_print(stream,
                   "time on one device, judged by the rows that are there: at most %s for %zu "
                   "configurations\n",
                   time_format(total->seconds, text), total->judged);
    if (assumed > 0)
        utf8_print(stream,
                   "time on one slow device: at most %s for %zu configurations; a fast GPU takes "
                   "less than 1 s for most\n",
                   time_format(total->at_most, text), assumed);
    if (total->left > 0)
        utf8_print(stream,
                   "several devices share this time; measuring the roofs is not included\n");
}
