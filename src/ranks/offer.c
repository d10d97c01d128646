#include "ranks/offer.h"

#include <math.h>
#include <stdio.h>

#include "model/protocol.h"
#include "model/workloads/program.h"

size_t offer_together(const struct offer *offer)
{
    const struct measure_settings *measure = &offer->manifest->measure;
    int64_t most =
        measure->count_together ? measure->count_together : offer->device->count_together;
    bool counted = measure->counters != COUNTERS_OFF && offer->device->counters.code == COUNTED_YES;
    return counted && most > 1 ? (size_t)most : 1;
}

static double estimate(const struct offer *offer, size_t item)
{
    const struct plan_item *asked = &offer->plan->items[item];
    return forecast_estimate(offer->forecast, asked->config.workload, asked->cost).seconds;
}

static bool fits(const struct offer *offer, size_t item)
{
    if (isinf(offer->left))
        return true;
    double seconds = estimate(offer, item);
    for (size_t i = 0; i < offer->hand->count; ++i)
        seconds += estimate(offer, offer->hand->items[i].item);
    return seconds <= offer->left;
}

bool offer_suits(const void *context, size_t item)
{
    const struct offer *offer = context;
    return (offer->hand->count == 0 || !offer->alone[item]) && fits(offer, item);
}

/* A program ends before its worker is taken for hung: then its row has its last words. */
static void program_place(const struct manifest *manifest, struct request *request)
{
    const double share = 0.9;
    snprintf(request->folder, sizeof request->folder, "%s",
             manifest->folder ? manifest->folder : "");
    request->timeout = share * manifest->sweep.timeout;
}

char *offer_request(const struct offer *offer, size_t item)
{
    struct request request = request_default(REQUEST_MEASURE);
    request.measure = offer->manifest->measure;
    request.seed = offer->manifest->sweep.seed;
    request.config = offer->plan->items[item].config;
    request.count_later = offer_together(offer) > 1 && !offer->alone[item];
    if (offer->choices)
        choices_find(offer->choices, offer->plan->items[item].hash, offer->device, &request.choice);
    if (config_is_program(&request.config))
        program_place(offer->manifest, &request);
    return request_encode(&request);
}
