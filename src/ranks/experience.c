#include "ranks/experience.h"

#include "ranks/resumption.h"

static void learn_time(struct experience *experience, int rank, size_t item,
                       const struct record *record, double seconds, bool timed)
{
    const struct plan_item *measured = &experience->plan->items[item];
    if (!resumption_tells(record->status, record->attempts))
        return;
    if (seconds > 0)
        forecast_learn(experience->forecast, measured->config.workload, measured->cost, seconds);
    if (!timed)
        schedule_learn(experience->schedule, rank, item, record->wall_time, false);
}

void experience_add_timing(struct experience *experience, int rank, size_t item, double seconds)
{
    schedule_learn(experience->schedule, rank, item, seconds, false);
}

static void drop_choices(struct experience *experience, const struct error *error)
{
    log_print(experience->log, LOG_WARNING,
              "the choices of algorithms are not kept from here on: %s", error->text);
    experience->choices = NULL;
}

void experience_add(struct experience *experience, int rank, size_t item,
                    const struct record *record, double seconds, bool timed)
{
    struct error error;
    learn_time(experience, rank, item, record, seconds, timed);
    if (experience->choices &&
        choices_learn(experience->choices, record, experience->plan->items[item].hash,
                      &experience->devices[rank], &error))
        drop_choices(experience, &error);
}

void experience_save(struct experience *experience)
{
    struct error error;
    if (experience->choices && choices_save(experience->choices, &error))
        drop_choices(experience, &error);
}
