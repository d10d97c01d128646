#include "worker/layout.h"

#include <math.h>
#include <string.h>

#include "model/algorithm.h"

/* The configuration in one layout. */
struct attempt {
    struct config config;
    struct work *work;    /* NULL: the device does not take this layout */
    struct record record; /* a copy of the row's record, which owns the data */
};

/* The layouts are the first two words of the parameter; the third is "auto". */
enum { LAYOUTS = 2 };

/* Returns the parameter `layout` if its value is "auto"; otherwise -1. */
static int automatic_layout(const struct config *config)
{
    int parameter = workload_parameter(config->workload, "layout");
    if (parameter < 0)
        return -1;
    const char *const *words = config->workload->parameters[parameter].words;
    const char *word = words[config_get(config, (size_t)parameter).first];
    return strcmp(word, "auto") == 0 ? parameter : -1;
}

static struct attempt attempt_of(const struct config *config, int parameter, int layout,
                                 const struct record *record)
{
    struct attempt attempt = {.config = *config, .record = *record};
    const struct value value = {.first = layout};
    config_set(&attempt.config, (size_t)parameter, &value);
    record_set_layout(&attempt.record, &attempt.config);
    attempt.record.search_time = attempt.record.search_noise = NAN;
    attempt.record.layout_other_time = NAN;
    return attempt;
}

/* The time of a layout is the time that the algorithm search has measured. A device without a
 * search runs a few iterations, of which the first is a warm-up. */
static enum status attempt_prepare(const struct device_ops *device, struct device_state *state,
                                   uint64_t seed, struct attempt *attempt, struct error *error)
{
    enum { ITERATIONS = 4 };
    double seconds[ITERATIONS], *least = &attempt->record.search_time;
    struct work *work = NULL;
    TRY(config_check(&attempt->config, error));
    TRY(device->prepare(state, &attempt->config, seed, &work, &attempt->record, error));
    enum status status = STATUS_OK;
    if (isnan(*least)) {
        status = device->time(state, work, config_cold(&attempt->config), ITERATIONS, seconds, NULL,
                              error);
        for (int i = 1; i < ITERATIONS && status == STATUS_OK; ++i)
            *least = fmin(*least, seconds[i]);
    }
    if (status == STATUS_OK)
        attempt->work = work;
    else if (status != STATUS_DEVICE)
        device->release(state, work);
    return status;
}

enum status layout_prepare(const struct device_ops *device, struct device_state *state,
                           const struct config *config, uint64_t seed, struct work **work,
                           struct record *record, struct error *error)
{
    const int parameter = automatic_layout(config);
    if (parameter < 0)
        return device->prepare(state, config, seed, work, record, error);
    const struct algorithm *offer = record->offer;
    struct attempt attempts[LAYOUTS];
    int offered = -1;
    for (int i = 0; i < LAYOUTS; ++i) {
        attempts[i] = attempt_of(config, parameter, i, record);
        if (offer && strcmp(attempts[i].record.layout_chosen, offer->layout_chosen) == 0)
            offered = i;
        else
            attempts[i].record.offer = NULL;
    }
    struct attempt *first = &attempts[offered == 1], *second = &attempts[offered != 1];
    struct attempt *kept = first, *other = second;
    enum status status = attempt_prepare(device, state, seed, first, error);
    if (status == STATUS_DEVICE)
        return status;
    if (offered >= 0 && first->work && offer->algorithm_id[0] &&
        strcmp(first->record.algorithm_id, offer->algorithm_id) == 0) {
        kept->record.layout_other_time = offer->layout_other_time;
    } else {
        /* the record has the wall time of both layouts */
        const size_t parts = sizeof record->wall_time_part;
        memcpy(second->record.wall_time_part, first->record.wall_time_part, parts);
        status = attempt_prepare(device, state, seed, second, error);
        if (status == STATUS_DEVICE)
            return status;
        memcpy(first->record.wall_time_part, second->record.wall_time_part, parts);
        const struct record *records[] = {&attempts[0].record, &attempts[1].record};
        /* the larger relative noise of the two times */
        const double noise = fmax(fmax(records[0]->search_noise, records[1]->search_noise), 0.0);
        bool wins =
            !attempts[0].work ||
            (attempts[1].work && (1.0 + noise) * records[1]->search_time < records[0]->search_time);
        kept = &attempts[wins];
        other = &attempts[!wins];
    }
    if (!kept->work)
        return status;
    if (other->work)
        kept->record.layout_other_time = other->record.search_time;
    device->release(state, other->work);
    *record = kept->record;
    *work = kept->work;
    return STATUS_OK;
}
