#include "ranks/resumption.h"

#include <string.h>

#include "ranks/earlier_rows.h"

bool resumption_tells(int64_t status, int64_t attempts)
{
    return status == RECORD_MEASURED && attempts <= 1;
}

static bool same_device(const struct device *a, const struct device *b)
{
    return strcmp(a->uuid, b->uuid) == 0 && strcmp(a->hostname, b->hostname) == 0;
}

/* A row of a device like one of this run's tells how long its configuration takes. */
static void learn(const struct resumption *resumption, const struct device *device,
                  const struct row *row, size_t item)
{
    const struct plan_item *measured = &resumption->plan->items[item];
    if (!resumption_tells(row->status, row->attempts))
        return;
    for (int rank = 0; rank < resumption->ranks; ++rank)
        if (strcmp(device->kind, resumption->devices[rank].kind) == 0 &&
            strcmp(device->model, resumption->devices[rank].model) == 0) {
            if (row->wall_time > 0)
                forecast_learn(resumption->forecast, measured->config.workload, measured->cost,
                               row->wall_time);
            schedule_learn(resumption->schedule, rank, item, row->wall_time, true);
            return;
        }
}

/* The row's item is done: for everyone, or with replicate for the rank that has its device. */
static void mark(void *context, const struct row *row, size_t item)
{
    const struct resumption *resumption = context;
    int64_t index = results_device(resumption->earlier, row->device_key);
    const struct device *device = index < 0 ? NULL : &resumption->earlier->devices[index];
    for (int rank = 0; rank < resumption->ranks; ++rank)
        if (!resumption->replicate || (device && same_device(device, &resumption->devices[rank])))
            schedule_done(resumption->schedule, rank, item);
    if (device)
        learn(resumption, device, row, item);
}

bool resumption_apply(const struct resumption *resumption)
{
    struct resumption context = *resumption;
    return !resumption->earlier ||
           earlier_rows_each(resumption->plan, resumption->earlier, mark, &context);
}
